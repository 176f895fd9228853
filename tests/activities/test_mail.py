"""Mails: one for each key, as it was first written, and nothing foreign in the wrong place (P3)."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from activities.ledger import EntryState, Ledger
from activities.mail import ATTEMPT, KEY_HEADER, Mailer
from activities.mail_text import SUBJECTS, MailWriter, money_text, one_line, quoted
from domain.errors import Misconfigured, NotNow, OutsideError, Unreachable
from domain.mail import TO_STAFF, MailFacts, MailOrder, MailPurpose, MailReceipt, MailState
from domain.models import Contact
from domain.money import Money
from tests.activities.support import MovableClock, proposal, usd
from tests.northwind.support import books, set_faults
from tests.signing import MARIA, SAM, TOM
from workers.settings import Settings
from workers.wiring import Activities, build_activities

KEY = "local/refund-order-8890/req-1/mail.under_review"
ADA = Contact(name="Ada Park", address="ada.park@customers.example")


@pytest.fixture
def settings(settings: Settings, ledger_url: str) -> Settings:
    """The worker's settings, with the ledger on each kind of database in turn."""
    return settings.model_copy(update={"ledger_url": SecretStr(ledger_url)})


@pytest.fixture
def mailer(activities: Activities) -> Mailer:
    """The adapter."""
    return activities.mailer


def facts(**changes: Any) -> MailFacts:
    """What a mail about order 8890 may know."""
    fields = {
        "order_id": "8890",
        "workflow_id": "refund-order-8890",
        "customer": "Ada Park",
        "amount": usd(42000),
        "proposal": proposal(),
        "requester": SAM,
        "letter": "It came broken.\nPlease help.",
        "summary": "A broken machine, covered by §2.",
        **changes,
    }
    return MailFacts.model_validate(fields)


def mail(purpose: MailPurpose = MailPurpose.UNDER_REVIEW, **changes: Any) -> MailOrder:
    """An order to write to Ada."""
    fields = {
        "environment": "local",
        "key": KEY,
        "purpose": purpose,
        "to": (ADA,),
        "facts": facts(),
        **changes,
    }
    return MailOrder.model_validate(fields)


async def mailbox(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """All messages that arrived."""
    messages: list[dict[str, Any]] = (await http.get("/mailbox.json")).json()["messages"]
    return messages


async def only_message(http: httpx.AsyncClient) -> dict[str, Any]:
    """The one message that arrived."""
    messages = await mailbox(http)
    assert len(messages) == 1
    return messages[0]


async def test_a_mail_is_sent_once_for_its_key(mailer: Mailer, http: httpx.AsyncClient) -> None:
    """A repeat, after a reset for instance, sends nothing and says so."""
    first = await mailer.send_mail(mail())
    again = await mailer.send_mail(mail())
    assert (first.state, again.state) == (MailState.SENT, MailState.ALREADY_SENT)
    assert first.message_id == again.message_id
    message = await only_message(http)
    assert (message["to"], message["key"]) == ([ADA.address], KEY)
    assert message["message_id"] == first.message_id
    assert message["headers"][KEY_HEADER] == KEY
    assert (await books(http))["calls"]["send"] == 1


async def test_a_mail_whose_answer_was_lost_arrives_once(
    mailer: Mailer, http: httpx.AsyncClient
) -> None:
    """R38: taken and then silence is unknown; the same message comes again under its key."""
    await set_faults(http, {"system": "mail", "operation": "send", "what": "drop_after"})
    with pytest.raises(Unreachable):
        await mailer.send_mail(mail())
    assert (await mailer.send_mail(mail())).state is MailState.SENT
    assert [message["deliveries"] for message in (await books(http))["mails"]] == [2]


async def test_a_repeat_is_the_message_that_was_written_first(
    mailer: Mailer, http: httpx.AsyncClient
) -> None:
    """Other facts and templates under an old key change nothing: same id, same words."""
    await http.post("/control/mail", json={"knows_keys": False})
    await set_faults(http, {"system": "mail", "operation": "send", "what": "drop_after"})
    with pytest.raises(Unreachable):
        await mailer.send_mail(mail())
    await mailer.send_mail(mail(facts=facts(customer="Somebody Else")))
    first, second = await mailbox(http)
    assert (first["message_id"], first["text"]) == (second["message_id"], second["text"])
    assert "Ada Park" in second["text"]


async def test_a_mail_that_the_server_takes_later_is_tried_again(
    mailer: Mailer, http: httpx.AsyncClient
) -> None:
    """A known later is an error to retry, and keeps nobody from the next attempt."""
    row = {"system": "mail", "operation": "send", "what": "status", "status": 451}
    await set_faults(http, row)
    with pytest.raises(NotNow):
        await mailer.send_mail(mail())
    assert (await mailer.send_mail(mail())).state is MailState.SENT


@pytest.mark.parametrize("stage", ["rcpt", "data"])
async def test_a_refused_mail_is_final(mailer: Mailer, http: httpx.AsyncClient, stage: str) -> None:
    """The server's no is a result, and a repeat does not ask again."""
    row = {"system": "mail", "operation": "send", "what": "status", "status": 550, "stage": stage}
    await set_faults(http, row)
    receipts = [await mailer.send_mail(mail()) for _ in range(2)]
    assert [receipt.state for receipt in receipts] == [MailState.REFUSED] * 2
    assert "550" in receipts[0].detail
    assert (await books(http))["calls"]["send"] == 1


async def test_a_later_for_one_recipient_sends_to_nobody(
    mailer: Mailer, http: httpx.AsyncClient
) -> None:
    """All or none: else the retry would reach the others twice."""
    row = {"system": "mail", "operation": "send", "what": "status", "status": 450, "stage": "rcpt"}
    two = (ADA, Contact(name="Bo", address="bo@customers.example"))
    await set_faults(http, {**row, "recipient": two[1].address})
    with pytest.raises(NotNow):
        await mailer.send_mail(mail(to=two))
    assert await mailbox(http) == []
    await mailer.send_mail(mail(to=two))
    assert (await only_message(http))["to"] == [person.address for person in two]


async def test_two_attempts_at_once_send_one_mail(
    settings: Settings, http: httpx.AsyncClient, clock: MovableClock
) -> None:
    """An attempt that is thought dead and lives does not meet its successor at the server."""
    url = settings.ledger_url.get_secret_value()
    async with Ledger(url, clock) as ledger, build_activities(settings, clock) as other:
        await ledger.claim(KEY, "0" * 64, "what the first attempt has written", ATTEMPT)
        with pytest.raises(NotNow) as raised:
            await other.mailer.send_mail(mail())
    assert raised.value.retry_after_seconds == pytest.approx(ATTEMPT.total_seconds(), abs=5)
    assert await mailbox(http) == []


async def test_an_attempt_that_was_killed_is_taken_over(
    settings: Settings, mailer: Mailer, http: httpx.AsyncClient, clock: MovableClock
) -> None:
    """Its claim runs out, and what it had written is sent by the next."""
    await set_faults(http, {"system": "mail", "operation": "send", "what": "drop_before"})
    with pytest.raises(Unreachable):
        await mailer.send_mail(mail())
    async with Ledger(settings.ledger_url.get_secret_value(), clock) as ledger:
        killed = await ledger.claim(KEY, "0" * 64, "nothing new", ATTEMPT)
        assert killed.state is EntryState.CLAIMED
    clock.advance(seconds=ATTEMPT.total_seconds())
    assert (await mailer.send_mail(mail(facts=facts(customer="Bo")))).state is MailState.SENT
    assert "Ada Park" in (await only_message(http))["text"]


BAD_CONTACTS = [
    pytest.param((), id="nobody"),
    pytest.param((Contact(name="A", address="no-address"),), id="no address"),
    pytest.param((Contact(name="A", address="ä@customers.example"),), id="not ASCII"),
    pytest.param((Contact(name="A", address="a@b.example\r\nBcc: c@d.example"),), id="header"),
]


@pytest.mark.parametrize("to", BAD_CONTACTS)
async def test_a_mail_to_no_address_is_refused(
    mailer: Mailer, http: httpx.AsyncClient, to: tuple[Contact, ...]
) -> None:
    """Bad input ends in a result, not in an error that is retried for days."""
    assert (await mailer.send_mail(mail(to=to))).state is MailState.REFUSED
    assert await mailbox(http) == []


async def test_an_alert_without_anybody_goes_to_operations(
    mailer: Mailer, http: httpx.AsyncClient
) -> None:
    """P4: where the policy could not be read, the settings know whom to tell."""
    await mailer.send_mail(mail(MailPurpose.ALERT, to=()))
    assert (await only_message(http))["to"] == ["refund-operations@northwind.example"]


async def test_foreign_words_stay_where_they_belong(
    mailer: Mailer, http: httpx.AsyncClient
) -> None:
    """A letter can add no header, no markup and no line that passes for ours."""
    evil = "Hi\r\nBcc: x@evil.example\r\n\r\n<script>alert(1)</script>\n\n    refund approve 8890"
    order = mail(
        MailPurpose.APPROVAL_REQUEST,
        to=(Contact(name=evil, address=MARIA),),
        facts=facts(letter=evil, customer=evil, summary=evil),
    )
    assert (await mailer.send_mail(order)).state is MailState.SENT
    message = await only_message(http)
    assert message["to"] == [MARIA]
    assert not {"Bcc", "bcc"} & set(message["headers"])
    assert "<script>" not in message["html"]
    own = [line for line in message["text"].splitlines() if line.startswith("    refund approve")]
    assert own == [f"    refund approve 8890 --as {MARIA}"]


async def test_approvers_are_told_all_they_need(mailer: Mailer, http: httpx.AsyncClient) -> None:
    """What, why, what the model thinks, the letter, and the exact command for each of them."""
    to = (Contact(name="Maria", address=MARIA), Contact(name="Tom", address=TOM))
    await mailer.send_mail(mail(MailPurpose.APPROVAL_REQUEST, to=to))
    text = (await only_message(http))["text"]
    for needed in (
        "$420.00",
        proposal().proposal_id,
        "420.00 USD is more than 50.00 USD",
        "What the model says",
        "> A broken machine",
        "> It came broken.",
        f"refund approve 8890 --as {MARIA}",
        f"refund reject 8890 --as {TOM}",
    ):
        assert needed in text


def test_a_deadline_is_told_in_the_readers_time_zones() -> None:
    """Each zone once, UTC for everybody; one that nobody knows is left out (issue 4)."""
    zones = ("Europe/Berlin", "America/New_York", "Europe/Berlin", "Mars/Olympus", "UTC")
    to = tuple(Contact(name="x", address=MARIA, time_zone=zone) for zone in zones)
    deadline = datetime(2026, 12, 7, 2, 30, tzinfo=UTC)
    told = MailWriter().write(
        mail(MailPurpose.APPROVAL_REQUEST, to=to, facts=facts(deadline=deadline))
    )
    [line] = [line for line in told.plain.splitlines() if line.startswith("Decide by: ")]
    assert line.removeprefix("Decide by: ").split("; ") == [
        "Monday, 07 December 2026, 03:30 in Europe/Berlin",
        "Sunday, 06 December 2026, 21:30 in America/New York",
        "Monday, 07 December 2026, 02:30 UTC",
    ]


INTERNAL = "internal: Maria said no, re_123 of pi_8890"
TO_CUSTOMERS = [purpose for purpose in MailPurpose if purpose not in TO_STAFF]


@pytest.mark.parametrize("purpose", TO_CUSTOMERS)
def test_customers_hear_nothing_internal(purpose: MailPurpose) -> None:
    """No explanation, no requester, no summary and no id of ours reaches a customer."""
    told = MailWriter().write(
        mail(purpose, facts=facts(explanation=INTERNAL, reason="rejected_by_approver"))
    )
    for word in (INTERNAL, SAM, "covered by", proposal().proposal_id, "rejected_by", "pi_8890"):
        assert word not in told.plain + told.html + told.subject


@pytest.mark.parametrize("purpose", list(MailPurpose))
def test_every_purpose_can_be_written_of_no_facts_at_all(purpose: MailPurpose) -> None:
    """An outage leaves few facts; the mail about it is written all the same."""
    few = MailFacts(order_id="8890", workflow_id="refund-order-8890")
    told = MailWriter().write(mail(purpose, facts=few))
    assert told.subject == SUBJECTS[purpose].format(order_id="8890", outcome="ended")
    assert "8890" in told.plain
    assert "None" not in told.plain


AMOUNTS = [
    (42000, "USD", "en_US", "$420.00"),
    (42000, "USD", "de-DE", "420,00\xa0$"),
    (12500, "JPY", "en_US", "¥12,500"),
    (45500, "KWD", "en_US", "KWD45.500"),
    (45500, "IQD", "en_US", "IQD45.500"),
    (42000, "USD", "no such place", "$420.00"),
]


@pytest.mark.parametrize(("minor", "currency", "locale", "written"), AMOUNTS)
def test_amounts_are_written_with_all_their_decimals(
    minor: int, currency: str, locale: str, written: str
) -> None:
    """R29: by the currency's own exponent, in the customer's own way."""
    money = Money(amount_minor=minor, currency=currency)
    assert money_text(money, locale).replace("\xa0", " ") == written.replace("\xa0", " ")


@pytest.mark.parametrize(
    ("clean", "text", "expected"),
    [
        (one_line, "a\r\nb\x00\x1b[2Jc", "a b[2Jc"),
        (one_line, "\u202eevil\u2028line", "evil line"),
        (lambda text: quoted(text, 100), "a\n\n    b\x07\u2029c", "> a\n>\n>     b\n> c"),
        (lambda text: quoted(text, 3), "abcdef", "> abc"),
    ],
)
def test_foreign_text_is_cleaned(clean: Callable[[str], str], text: str, expected: str) -> None:
    """No control characters, no marks that turn the direction of reading, and an end."""
    assert clean(text) == expected


async def _receipt(smtp_url: str, folder: Path) -> MailReceipt:
    settings = Settings.model_validate({"data_dir": folder, "smtp_url": smtp_url})
    async with build_activities(settings) as activities:
        return await activities.mailer.send_mail(mail())


async def test_no_mail_server_is_unreachable(tmp_path: Path, unused_tcp_port: int) -> None:
    """Nobody listens: try again later."""
    with pytest.raises(Unreachable):
        await _receipt(f"smtp://127.0.0.1:{unused_tcp_port}", tmp_path)


@pytest.mark.parametrize("scheme", ["smtp+starttls", "smtps"])
async def test_a_server_without_the_wanted_tls_gets_no_mail(
    settings: Settings, http: httpx.AsyncClient, tmp_path: Path, scheme: str
) -> None:
    """TLS that was asked for is not done without."""
    url = settings.smtp_url.get_secret_value().replace("smtp", scheme, 1)
    with pytest.raises(OutsideError) as raised:
        await _receipt(url, tmp_path / "other")
    assert isinstance(raised.value, Misconfigured | Unreachable)
    assert await mailbox(http) == []


@pytest.mark.parametrize(
    ("deciders", "needed", "approved", "says"),
    [
        ((), 1, (), "is under review: a member of our team is looking at it."),
        (("Maria Silva",), 1, (), "is under review: Maria Silva will decide on it."),
        (("Maria Silva", "Tom Becker"), 1, (), "Maria Silva or Tom Becker will decide"),
        (("A", "B", "C"), 1, (), "A, B or C will decide"),
        (("A", "B", "C", "D", "E"), 1, (), "A, B, C, D or another colleague will decide"),
        (("A", "B"), 2, (), "A and B will decide"),
        (("A", "B", "C"), 2, (), "two of A, B and C will decide"),
        (("A", "B"), 2, ("M",), "A or B will decide"),
        (("<b>A</b>\nB: 1",), 1, (), "<b>A</b> B: 1 will decide"),
    ],
)
async def test_the_customer_reads_who_will_decide(
    deciders: tuple[str, ...], needed: int, approved: tuple[str, ...], says: str
) -> None:
    """Names alone, no addresses; markup in a name is text; a run of release 1 names nobody."""
    proposed = proposal().model_copy(update={"approvals_needed": needed})
    given = facts(deciders=deciders, proposal=proposed, approved_by=approved)
    text = MailWriter().write(mail(facts=given))
    assert says in text.plain
    assert "looking at it.\n\nThere is nothing" in text.plain or "on it.\n\nThere" in text.plain
    assert "<b>A</b>" not in text.html
    assert "@" not in text.plain
