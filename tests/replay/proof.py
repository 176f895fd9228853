"""Changes to the code that waits, and what catches each: one table, shown in docs/versioning.md."""

from dataclasses import dataclass
from enum import StrEnum

from tests.replay import releases
from tests.trees import Change


class By(StrEnum):
    """What looks at a change, in the order of `make test`."""

    LINT = "lint"
    """ruff, `tests/patch_lint.py` and `tests/set_lint.py`."""
    TYPES = "types"
    SANDBOX = "sandbox"
    """Temporal's, around the code that the gate replays."""
    GATE = "gate"


@dataclass(frozen=True)
class Row:
    """A change, and what becomes of it."""

    changes: tuple[Change, ...]
    caught: dict[By, str]
    """By what, and a part of what it says; all others must have nothing to say."""
    misses: tuple[str, ...] = ()
    """Histories that replay as if nothing were: they end before the change."""
    sees: tuple[str, ...] = ()
    """Those that do not. Where there are neither, the gate is not asked."""


def _refund(old: str, new: str) -> Change:
    return Change("workflows/refund.py", old, new)


_WAITING, _DECIDED = "one_approval.waiting", "one_approval.decided"
_REFUNDED, _CLOSED = "one_approval.refunded", "one_approval.closed"
_ALL = (_WAITING, _DECIDED, _REFUNDED, _CLOSED)
_TIMER = "the code asks for timer of 0:00:01"
_SIGNAL = 'SIGNAL_DECIDE = "decide"\n'
_MAKE_REFUND = "    @activity.defn\n    async def make_refund("
_READ_AT = "    read_at: Instant\n"
_IN_THE_CASE = "            read_at=read_at,\n"
_ASKED = "    asked: Money | None = None\n"
_ASKED_TOLD = "            asked=self.claim.amount if self.claim else None,\n"
_REFUSED_BY_MAIL = '    refused: tuple[str, ...] = ()\n    """Addresses that'
_ATTENTION = "        # A withdrawal that has arrived is judged before the money moves.\n"
_LOOK = '        await workflow.sleep(pause, summary="Wait before the refund is tried again")\n'
_FINDING = (
    "        finding = await recheck_now(state)\n        if not isinstance(finding, Clear):\n"
)
_CONST = "_MISSING_PATIENCE = timedelta(hours=1)\n"
_ADDRESSEES = "    to = tuple(dict.fromkeys((*_still_to_ask(state), *others)))\n"
_PATIENT = "    maximum_interval=timedelta(minutes=5),\n"
_IMPORT = "from temporalio import workflow\n"
_MAILS = "    mails: list[MailOrder] = []\n"
_DONE = "        state.enter(Stage.CLOSED)\n"

PROOF: dict[str, Row] = {
    "a sleep before the wait": Row(
        (
            _refund(
                "            state.show_waiting()\n",
                "            await workflow.sleep(1)\n            state.show_waiting()\n",
            ),
        ),
        {By.GATE: _TIMER},
        sees=_ALL,
    ),
    "a step after the wait": Row(
        (_refund(_ATTENTION, f"        finding = await recheck_now(state)\n{_ATTENTION}"),),
        {By.GATE: "the code asks for Activity read_case"},
        misses=(_WAITING, _DECIDED),
        sees=(_REFUNDED, _CLOSED),
    ),
    "a step at the end": Row(
        (_refund(_DONE, f"        await workflow.sleep(1)\n{_DONE}"),),
        {By.GATE: _TIMER},
        misses=(_WAITING, _DECIDED, _REFUNDED),
        sees=(_CLOSED,),
    ),
    "a timer and an activity swapped": Row(
        (
            Change("workflows/paying.py", _LOOK, ""),
            Change("workflows/paying.py", _FINDING, f"{_FINDING[:43]}{_LOOK}{_FINDING[43:]}"),
        ),
        {By.GATE: "the code asks for Activity read_case"},
        misses=("unknown_for_an_hour.decided",),
        sees=("unknown_for_an_hour.closed",),
    ),
    "two activities of one type swapped": Row(
        (
            Change(
                "workflows/postbox.py",
                "        for order in orders:\n",
                "        for order in reversed(orders):\n",
            ),
        ),
        {By.GATE: "send_mail.key is"},
        misses=("rejected.waiting",),
        sees=("rejected.closed",),
    ),
    "an activity renamed": Row(
        (
            Change(
                "activities/interfaces.py",
                _MAKE_REFUND,
                _MAKE_REFUND.replace("defn", 'defn(name="pay")'),
            ),
        ),
        {By.GATE: "the code asks for Activity pay"},
        misses=(_WAITING, _DECIDED),
        sees=(_REFUNDED, _CLOSED),
    ),
    "an activity renamed in its interface alone": Row(
        (
            Change(
                "activities/interfaces.py",
                _MAKE_REFUND,
                _MAKE_REFUND.replace("make_refund", "pay_back"),
            ),
        ),
        {By.TYPES: 'has no attribute "make_refund"'},
    ),
    "a signal renamed": Row(
        (Change("domain/names.py", _SIGNAL, _SIGNAL.replace('"decide"', '"judge"')),),
        {By.GATE: "the history has Activity verify_statement"},
        misses=(_WAITING,),
        sees=(_DECIDED, _REFUNDED, _CLOSED),
    ),
    "an idempotency key changed": Row(
        (Change("domain/names.py", 'return f"refund.r{', 'return f"refund.{'),),
        {By.GATE: "make_refund.key is"},
        misses=(_WAITING, _DECIDED),
        sees=(_REFUNDED, _CLOSED),
    ),
    "a field of the status dropped": Row(
        (
            Change("domain/trail.py", _ASKED, ""),
            Change("domain/trail.py", "from domain.money import Money\n", ""),
            Change("workflows/state.py", _ASKED_TOLD, ""),
        ),
        {By.GATE: "status.asked is missing"},
        sees=_ALL,
    ),
    "a field of an activity's input dropped": Row(
        (Change("workflows/notices.py", "        letter=state.request.message[:2_000],\n", ""),),
        {By.GATE: "send_mail.facts.letter is"},
        sees=_ALL,
    ),
    "a field dropped that is still read": Row(
        (Change("domain/mail.py", _REFUSED_BY_MAIL, '    """Addresses that'),),
        {By.TYPES: '"MailReceipt" has no attribute "refused"'},
    ),
    "a required field added": Row(
        (
            Change("domain/case.py", _READ_AT, f"{_READ_AT}    region: str\n"),
            Change("activities/cases.py", _IN_THE_CASE, f'{_IN_THE_CASE}            region="",\n'),
        ),
        {By.GATE: "validation error for Case region Field required"},
        sees=_ALL,
    ),
    "a constant in a condition changed": Row(
        (Change("workflows/paying.py", _CONST, _CONST.replace("hours=1", "hours=3")),),
        {By.GATE: "the history has Activity send_mail"},
        misses=("never_found.refunded",),
        sees=("never_found.closed",),
    ),
    "`datetime.now()`": Row(
        (
            Change(
                "workflows/waiting.py",
                "begun = deadline - policy.time_to_decide, workflow.now()\n",
                "begun = deadline - policy.time_to_decide, datetime.now(deadline.tzinfo)\n",
            ),
        ),
        {
            By.LINT: "datetime.datetime.now` is banned",
            By.SANDBOX: "Cannot access datetime.datetime.now",
        },
        sees=_ALL,
    ),
    "a file read": Row(
        (
            Change("workflows/notices.py", _IMPORT, f"import pathlib\n\n{_IMPORT}"),
            Change("workflows/notices.py", _MAILS, f'    pathlib.Path("/").stat()\n{_MAILS}'),
        ),
        {By.SANDBOX: "Cannot access pathlib.Path.stat"},
        misses=(_WAITING, _DECIDED, _REFUNDED),
        sees=(_CLOSED,),
    ),
    "iteration over a set": Row(
        (
            Change(
                "workflows/notices.py",
                _ADDRESSEES,
                "    to = tuple({*_still_to_ask(state), *others})\n",
            ),
        ),
        {By.LINT: "tuple() takes a set in its order"},
    ),
    "a marker removed too early": Row(
        (
            *releases.read_step(releases.TELL_DEPRECATED),
            *releases.read_step(releases.TELL_GONE),
        ),
        {By.GATE: "the code asks for Activity tell_order_service"},
        misses=(_WAITING, _DECIDED, _REFUNDED),
        sees=(_CLOSED,),
    ),
    "a patch id used twice": Row(
        (
            Change(
                "domain/names.py",
                'PATCH_TELL_ORDER_SERVICE = "tell-order-service"',
                'PATCH_TELL_ORDER_SERVICE = "who-decides"',
            ),
        ),
        {By.LINT: "has the id 'who-decides' of another change"},
    ),
    "a retry count": Row(
        (Change("workflows/calls.py", _PATIENT, f"{_PATIENT}    maximum_attempts=1_000,\n"),),
        {},
        misses=_ALL,
    ),
    "a summary": Row(
        (Change("workflows/investigation.py", '"Ask the model, turn', '"The model, turn'),),
        {},
        misses=_ALL,
    ),
    "a comment": Row(
        (_refund(_DONE, f"        # All is told.\n{_DONE}"),),
        {},
        misses=_ALL,
    ),
    "an optional field": Row(
        (Change("domain/case.py", _READ_AT, f'{_READ_AT}    branch: str = ""\n'),),
        {},
        misses=_ALL,
    ),
    "words for people": Row(
        (
            Change(
                "workflows/waiting.py", 'f"Nobody decided until', 'f"There was no decision until'
            ),
        ),
        {},
        misses=("expired.waiting", "expired.escalated", "expired.closed"),
    ),
}


def table() -> list[str]:
    """The table as Markdown."""
    head = ["| change | caught by | what it says | first seen in |", "|---|---|---|---|"]
    return head + [f"| {' | '.join(_cells(name, row))} |" for name, row in PROOF.items()]


def _cells(name: str, row: Row) -> tuple[str, str, str, str]:
    if not row.caught:
        return name, "nothing: it may be", "", ""
    says = "; ".join(words.replace("`", "") for words in row.caught.values())
    return name, ", ".join(row.caught), says, f"`{row.sees[0]}`" if row.sees else ""
