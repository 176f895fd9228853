"""From the facts of a mail to its text: templates, amounts and dates, and words that are not ours.

Each purpose has one template of plain text. The HTML part is made from that text paragraph by
paragraph, so that both always say the same. Words of customers and of the model come in cleaned and
bounded; in HTML everything is escaped.
"""

import shlex
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from babel import Locale, UnknownLocaleError
from babel.dates import format_date
from babel.numbers import parse_pattern
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from domain.mail import TO_STAFF, MailFacts, MailOrder, MailPurpose
from domain.models import UTC_ZONE, Contact
from domain.money import Money, exponent

LETTER_LIMIT = 2_000
_LINE_LIMIT = 300
_NAME_LIMIT = 60
# Of a large company's many managers a customer need not read all names.
_NAMED = 4
_TEXT_LIMIT = 1_500
# Of staff, and of customers whose own locale nobody knows.
_STAFF_LOCALE = "en_US"
# They make text read otherwise than it is stored, such as a command from right to left.
_DIRECTION_MARKS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

# Subjects are made of ids and of words that stand here, never of what somebody wrote.
SUBJECTS = {
    MailPurpose.UNDER_REVIEW: "Your refund for order {order_id} is under review",
    MailPurpose.REFUNDED: "Your refund for order {order_id}",
    MailPurpose.DECLINED: "Your request about order {order_id}",
    MailPurpose.REJECTED: "Your request about order {order_id}",
    MailPurpose.EXPIRED: "Your request about order {order_id}",
    MailPurpose.WITHDRAWN: "Your request about order {order_id} was withdrawn",
    MailPurpose.ALREADY_REFUNDED: "Order {order_id} was refunded before",
    MailPurpose.REFUND_FAILED: "Your refund for order {order_id} is delayed",
    MailPurpose.DELAYED: "Your request about order {order_id} takes longer",
    MailPurpose.APPROVAL_REQUEST: "Please decide: refund for order {order_id}",
    MailPurpose.REMINDER: "Reminder, please decide: refund for order {order_id}",
    MailPurpose.ESCALATION: "Nobody has decided: refund for order {order_id}",
    MailPurpose.STAFF_NOTICE: "Refund for order {order_id}: {outcome}",
    MailPurpose.ALERT: "Needs attention: refund for order {order_id}",
    MailPurpose.CORRECTION: "Your refund for order {order_id} was returned to us",
    MailPurpose.SWEEP_ALERT: "Needs attention: the sweep of refunds",
}


@dataclass(frozen=True)
class MailText:
    """What a person reads."""

    subject: str
    plain: str
    html: str


@dataclass(frozen=True)
class _Block:
    kind: str
    lines: tuple[str, ...]


class MailWriter:
    """Writes mails from the templates beside this module."""

    def __init__(self) -> None:
        """Load templates; a name that a template uses and nobody sets is an error."""
        loader = PackageLoader("activities")
        self._plain = Environment(
            loader=loader,
            # Plain text: there is nothing to escape. The HTML environment below escapes all.
            autoescape=False,  # noqa: S701 - plain text; the HTML is escaped
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._html = Environment(
            loader=loader,
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    def write(self, order: MailOrder) -> MailText:
        """The text of a mail, in the customer's way of writing amounts and dates."""
        names = _names(order)
        subject = SUBJECTS[order.purpose].format(
            order_id=names["order_id"], outcome=names["outcome"] or "ended"
        )
        rendered = self._plain.get_template(f"{order.purpose.value}.txt").render(names)
        blocks = _blocks(rendered)
        plain = "\n\n".join("\n".join(block.lines) for block in blocks) + "\n"
        html = self._html.get_template("layout.html").render(
            subject=subject,
            newline=Markup("<br>\n"),
            blocks=[_Block(block.kind, _without_marks(block)) for block in blocks],
        )
        return MailText(subject=subject, plain=plain, html=html)


def one_line(text: str, limit: int = _LINE_LIMIT) -> str:
    """Foreign text for the middle of a line: no line breaks, no control characters, bounded."""
    line = " ".join(_printable(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def quoted(text: str, limit: int) -> str:
    """Foreign text as a quotation, so that nothing in it can pass for our own words."""
    lines = [_printable(line).rstrip() for line in text[:limit].strip().splitlines()]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def money_text(money: Money, locale: str) -> str:
    """An amount as people of this locale write it, with exactly the currency's own decimals."""
    place = _locale(locale)
    # Babel rounds some currencies to the decimals that are in daily use, which hides money.
    pattern = parse_pattern(place.currency_formats["standard"].pattern)
    digits = exponent(money.currency)
    pattern.frac_prec = (digits, digits)
    written: str = pattern.apply(
        money.decimal, place, currency=money.currency, currency_digits=False
    )
    return written


def _names(order: MailOrder) -> dict[str, Any]:
    """All that templates know."""
    facts = order.facts
    locale = _STAFF_LOCALE if order.purpose in TO_STAFF else facts.locale
    return {
        **_proposal_names(facts),
        "order_id": one_line(facts.order_id, 64),
        "workflow_id": one_line(facts.workflow_id, 128),
        "request_id": one_line(facts.request_id, 64),
        "customer": one_line(facts.customer, 100) or "customer",
        "amount": money_text(facts.amount, locale) if facts.amount else "",
        "approved_by": one_line(", ".join(facts.approved_by)),
        "waits_for": one_line(facts.waits_for),
        "deciders": _deciders(facts),
        "deadline": _deadline(facts.deadline, order.to),
        "requester": one_line(facts.requester),
        "letter": quoted(facts.letter, LETTER_LIMIT),
        "letter_cut": len(facts.letter) >= LETTER_LIMIT,
        "summary": quoted(facts.summary, _TEXT_LIMIT),
        "outcome": one_line(facts.outcome, 40).replace("_", " "),
        "reason": one_line(facts.reason, 80),
        "explanation": one_line(facts.explanation, _TEXT_LIMIT),
        "changed": one_line(facts.changed),
        "refunded": money_text(facts.refund.amount, locale) if facts.refund else "",
        "refunded_on": _date(facts.refund.created_at, locale) if facts.refund else "",
        "refund_id": one_line(facts.refund.id) if facts.refund else "",
        "refund_status": one_line(facts.refund.status) if facts.refund else "",
        # They become arguments of a command that people copy into a shell.
        "recipients": [shlex.quote(one_line(contact.address)) for contact in order.to],
    }


def _proposal_names(facts: MailFacts) -> dict[str, Any]:
    proposal = facts.proposal
    if proposal is None:
        return {"proposal_id": "", "taken_before": "", "why": ""}
    before = proposal.taken_before
    return {
        "proposal_id": one_line(proposal.proposal_id),
        "taken_before": money_text(before, _STAFF_LOCALE) if before.amount_minor else "",
        "why": one_line("; ".join(proposal.why_a_person)) or "the policy asks for one",
    }


def _deciders(facts: MailFacts) -> str:
    """Who will decide, in words for the customer; empty where nobody is named."""
    names = [one_line(name, _NAME_LIMIT) for name in facts.deciders if name.strip()]
    if len(names) > _NAMED:
        names = [*names[:_NAMED], "another colleague"]
    needed = facts.proposal.approvals_needed if facts.proposal is not None else 1
    if needed - len(facts.approved_by) > 1 and len(names) > 2:
        return f"two of {_listed(names, 'and')}"
    return _listed(names, "and" if needed - len(facts.approved_by) > 1 else "or")


def _listed(names: list[str], last: str) -> str:
    return f" {last} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _printable(text: str) -> str:
    return "".join(
        " " if char.isspace() else char
        for char in text
        if char.isspace()
        or (unicodedata.category(char) not in ("Cc", "Cs") and char not in _DIRECTION_MARKS)
    )


def _blocks(text: str) -> list[_Block]:
    """Paragraphs of a text, by the marks that its lines begin with."""
    blocks = []
    for paragraph in text.strip("\n").split("\n\n"):
        lines = tuple(line for line in paragraph.split("\n") if line.strip())
        if lines:
            blocks.append(_Block(_kind(lines), lines))
    return blocks


def _kind(lines: tuple[str, ...]) -> str:
    if all(line.startswith(">") for line in lines):
        return "quote"
    return "command" if all(line.startswith("    ") for line in lines) else "text"


def _without_marks(block: _Block) -> tuple[str, ...]:
    drop = {"quote": 2, "command": 4, "text": 0}[block.kind]
    return tuple(line[drop:] for line in block.lines)


def _locale(name: str) -> Locale:
    try:
        return Locale.parse(name.replace("-", "_"))
    except (ValueError, UnknownLocaleError):
        return Locale.parse(_STAFF_LOCALE)


def _date(instant: datetime, locale: str) -> str:
    written: str = format_date(instant.astimezone(UTC).date(), "long", locale=_locale(locale))
    return written


def _deadline(deadline: datetime | None, readers: Sequence[Contact]) -> str:
    """A deadline in the time zone of each reader, and in UTC for whoever is elsewhere."""
    if deadline is None:
        return ""
    zones = dict.fromkeys(reader.time_zone for reader in readers)
    there = [_in_zone(deadline, zone) for zone in zones if _zone(zone) not in (None, UTC)]
    return "; ".join([*there, f"{deadline.astimezone(UTC):%A, %d %B %Y, %H:%M} UTC"])


def _in_zone(instant: datetime, name: str) -> str:
    return f"{instant.astimezone(_zone(name)):%A, %d %B %Y, %H:%M} in {name.replace('_', ' ')}"


def _zone(name: str) -> tzinfo | None:
    """The time zone of this name; None where the database does not have it."""
    try:
        return UTC if name == UTC_ZONE else ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return None
