"""The fault plan: rows that say which call to which operation goes wrong, and how."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator
from starlette.responses import JSONResponse, Response

from northwind.store import Store
from northwind.wire import DroppedConnection

OPERATIONS: dict[str, tuple[str, ...]] = {
    "payments": (
        "refunds.create",
        "refunds.list",
        "refunds.retrieve",
        "payment_intents.retrieve",
        "charges.retrieve",
        "disputes.list",
    ),
    "orders": ("orders.get", "orders.note_refund"),
    "staff": ("staff.list", "staff.get"),
    "policy": ("policy.get",),
    "mail": ("send",),
    "model": ("chat",),
}
# Reading has no effect to leave out, so "answer OK without doing it" is for these alone.
WITH_EFFECT = ("refunds.create", "orders.note_refund", "send")
# These are asked about nothing in particular, so no row can be about one thing only.
ABOUT_NOTHING = ("staff.list", "policy.get")


class FaultRow(BaseModel):
    """One row of the plan.

    `call` is the number of the first call that it hits, counted from when the row was set, and
    `times` how many calls from there on (one, unless said; for "every" all, unless said). A row
    with `about` sees only calls that mention this text, such as an order's id or a key. Mail may go
    wrong at the recipients (`stage` "rcpt") instead of after the message: at all of them, or at one
    `recipient`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", coerce_numbers_to_str=True)

    system: Literal["payments", "orders", "staff", "policy", "mail", "model"]
    operation: str
    call: Annotated[StrictInt, Field(ge=1)] | Literal["every"] = 1
    times: Annotated[StrictInt, Field(ge=1)] | None = None
    what: Literal[
        "fail_before",
        "drop_before",
        "drop_after",
        "hang_after",
        "delay",
        "status",
        "ok_without_effect",
    ]
    seconds: Annotated[float, Field(gt=0, le=3600)] | None = None
    status: Annotated[StrictInt, Field(ge=200, le=599)] | None = None
    headers: dict[str, str] = {}
    body: Any = None
    stored: bool = False
    stage: Literal["rcpt", "data"] = "data"
    recipient: str | None = None
    about: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.operation not in OPERATIONS[self.system]:
            known = ", ".join(OPERATIONS[self.system])
            raise ValueError(f"{self.system} has no operation {self.operation!r}, only {known}")
        if (self.what == "delay") != (self.seconds is not None):
            raise ValueError("`seconds` goes with what=delay, and only with it")
        if (self.what == "status") != (self.status is not None):
            raise ValueError("`status` goes with what=status, and only with it")
        if self.what == "ok_without_effect" and self.operation not in WITH_EFFECT:
            raise ValueError(f"{self.operation} has no effect to leave out")
        if self.stored and (self.operation != "refunds.create" or self.what != "status"):
            raise ValueError("`stored` is for what=status at refunds.create only")
        if self.stored and not isinstance(self.body, dict | None):
            raise ValueError("a stored answer has a JSON object as its body")
        if self.stage == "rcpt" and self.operation != "send":
            raise ValueError("`stage` is for mail only")
        if self.recipient is not None and self.stage != "rcpt":
            raise ValueError("`recipient` goes with stage=rcpt, and only with it")
        if self.about is not None and self.operation in ABOUT_NOTHING:
            raise ValueError(f"{self.operation} is about nothing in particular")
        if self.about is not None and self.stage == "rcpt":
            raise ValueError("what a mail is about is not known yet at stage=rcpt")
        return self

    def hits(self, call: int) -> bool:
        """Whether the row hits this call; 1 is the first one since the row was set."""
        if self.call == "every":
            return self.times is None or call <= self.times
        return self.call <= call < self.call + (self.times or 1)


@dataclass(frozen=True)
class Plan:
    """What is to go wrong in one call: a delay in seconds, and then perhaps one fault."""

    delay: float
    fault: FaultRow | None

    def and_then(self, other: Self) -> "Plan":
        """Both plans for one call: the delays add up, and the first fault is taken."""
        return Plan(self.delay + other.delay, self.fault or other.fault)

    def at(self, stage: Literal["rcpt", "data"]) -> FaultRow | None:
        """The fault, if it strikes at this stage of a mail."""
        return None if self.fault is None or self.fault.stage != stage else self.fault


class Faults:
    """The rows, their counts, and the number of calls to each operation."""

    def __init__(self, store: Store) -> None:
        """Keep the plan in the company's database, so that it outlives the process."""
        self._store = store
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all delays, for the company is closing."""
        self._closing.set()

    async def wait(self, plan: Plan) -> bool:
        """Wait out the plan's delay; False when the company closed meanwhile."""
        if not plan.delay:
            return True
        try:
            await asyncio.wait_for(self._closing.wait(), plan.delay)
        except TimeoutError:
            return True
        return False

    async def closing(self) -> None:
        """Wait until the company closes, which ends whatever hangs."""
        await self._closing.wait()

    def add(self, rows: Sequence[FaultRow]) -> None:
        """Set more rows; each counts calls from now on."""
        with self._store.transaction() as db:
            db.executemany(
                "insert into faults (body, operation) values (?, ?)",
                [(row.model_dump_json(), row.operation) for row in rows],
            )

    def add_missing(self, rows: Sequence[FaultRow]) -> None:
        """Set those rows that are not there yet; one from an earlier start keeps its counts."""
        with self._store.transaction() as db:
            there = {row["body"] for row in db.execute("select body from faults")}
        self.add([row for row in rows if row.model_dump_json() not in there])

    def clear(self, operation: str | None = None, about: str | None = None) -> None:
        """Take rows away: all, or those of an operation, those about one thing, or both."""
        with self._store.transaction() as db:
            db.execute(_CLEAR, (operation, about))

    def rows(self) -> list[dict[str, Any]]:
        """All rows with their id, the calls they have seen and how often they fired."""
        with self._store.transaction() as db:
            found = db.execute("select * from faults order by id").fetchall()
        return [
            {"id": row["id"]}
            | json.loads(row["body"])
            | {"seen": row["seen"], "fired": row["fired"]}
            for row in found
        ]

    def take(self, operation: str, mentions: str = "") -> Plan:
        """Count a call to an operation, and say what is to go wrong in it.

        Args:
            operation: One of `OPERATIONS`.
            mentions: Ids and keys in the call, for rows that are about one of them.
        """
        with self._store.transaction(forced=False) as db:
            db.execute(
                "insert into calls (operation, count) values (?, 1)"
                " on conflict (operation) do update set count = count + 1",
                (operation,),
            )
            return _plan(db, _ROWS_FOR_A_CALL, operation, mentions)

    def take_about(self, operation: str, mentions: str) -> Plan:
        """What else is to go wrong in a call that was counted before one knew what it is about."""
        with self._store.transaction(forced=False) as db:
            return _plan(db, _ROWS_ABOUT, operation, mentions)


_ABOUT = "json_extract(body, '$.about')"
_CLEAR = (
    "delete from faults where operation = coalesce(?, operation)"  # noqa: S608 - one of ours
    f" and coalesce({_ABOUT}, '') = coalesce(?, {_ABOUT}, '')"
)
_ROWS_ABOUT = f"operation = ? and instr(?, {_ABOUT}) > 0"
_ROWS_FOR_A_CALL = f"operation = ? and ({_ABOUT} is null or instr(?, {_ABOUT}) > 0)"


def _plan(db: sqlite3.Connection, which: str, *given: str) -> Plan:
    delay = 0.0
    fault: FaultRow | None = None
    # Only conditions of this module are put into the text, never what a caller has given.
    db.execute(f"update faults set seen = seen + 1 where {which}", given)  # noqa: S608 - one of ours
    found = db.execute(f"select * from faults where {which} order by id", given)  # noqa: S608 - one of ours
    for kept in found.fetchall():
        row = FaultRow.model_validate_json(kept["body"])
        # Delays add up; of several other faults at one call the first one set is taken.
        if not row.hits(kept["seen"]) or (fault is not None and row.seconds is None):
            continue
        delay += row.seconds or 0.0
        fault = fault if row.seconds is not None else row
        db.execute("update faults set fired = fired + 1 where id = ?", (kept["id"],))
    return Plan(delay, fault)


ErrorAnswer = Callable[[int], Response]


def plain_error(status: int) -> Response:
    """The error answer of a system that has no error format of its own."""
    return JSONResponse({"error": "unavailable" if status >= 500 else "refused"}, status)


async def suffer(
    faults: Faults,
    plan: Plan,
    act: Callable[[], Response],
    *,
    error: ErrorAnswer = plain_error,
    pretend: Callable[[], Response] | None = None,
) -> Response:
    """Answer a request as the plan says; `act` does it, `pretend` answers without doing it."""
    if not await faults.wait(plan):
        return DroppedConnection()
    fault = plan.fault
    if fault is None or fault.stored:
        # A stored failure is remembered under the request's key: `act` sees to it.
        return act()
    match fault.what:
        case "fail_before":
            return error(500)
        case "drop_before":
            return DroppedConnection()
        case "drop_after":
            act()
            return DroppedConnection()
        case "hang_after":
            act()
            await faults.closing()
            return DroppedConnection()
        case "ok_without_effect" if pretend is not None:
            return pretend()
        case _:
            return status_answer(fault, error)


def status_answer(fault: FaultRow, error: ErrorAnswer) -> Response:
    """The answer that a `status` row asks for: its own body, or the system's usual one."""
    status = fault.status or 500
    if fault.body is None:
        answer = error(status)
    elif isinstance(fault.body, str):
        answer = Response(fault.body, status, media_type="text/plain")
    else:
        answer = JSONResponse(fault.body, status)
    for name, value in fault.headers.items():
        answer.headers[name] = value
    return answer
