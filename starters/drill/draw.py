"""Plans by chance: the same seed and number always draw the same plan.

Each group of things that go wrong has its chance. What it draws is left out where it cannot go
together with what the plan has already (`conflicts`), so the shares that come out are a bit lower.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from domain.money import Money
from starters.drill.conflicts import conflict_in
from starters.drill.course import due_minor, effects, places, places_inside, waits
from starters.drill.hostile import ANSWERS, LETTERS
from starters.drill.kinds import kinds
from starters.drill.plan import AT_START, AT_WAIT, Decision, Fault, Message, Plan, Process, Step

# Six digits in each id, so that none is a part of another.
LAST_NUMBER = 999_999

Piece = Step | Fault | dict[str, Any]
"""What a group adds to a plan: a step, a fault, or other fields."""
Group = Callable[[Random, Plan], Sequence[Piece]]


def draw(seed: int, number: int) -> Plan:
    """The plan of a run under a seed.

    Raises:
        ValueError: the number is none from 0 to `LAST_NUMBER`.
    """
    if not 0 <= number <= LAST_NUMBER:
        raise ValueError(f"runs are numbered from 0 to {LAST_NUMBER}, and this is {number}")
    random = Random(f"{seed}/{number}")  # noqa: S311 - repeatable, not secret
    plan = Plan(name="", order_id=f"d{seed}-{number:06d}", **_money(random))
    for chance, group in _GROUPS:
        if random.random() < chance:
            for piece in group(random, plan):
                plan = _with(plan, piece)
    return plan.model_copy(update={"name": ", ".join(kinds(plan))})


def _with(plan: Plan, piece: Piece) -> Plan:
    """The plan with one thing more, or as it was where that cannot be."""
    match piece:
        case Step():
            change: dict[str, Any] = {"steps": (*plan.steps, piece)}
        case Fault():
            change = {"faults": (*plan.faults, piece)}
        case _:
            change = piece
    changed = plan.model_copy(update=change)
    return plan if conflict_in(changed) is not None else changed


_CURRENCIES = {"USD": 78, "EUR": 9, "JPY": 7, "KWD": 6}
# What the tiers look at: amount and earlier refunds, in minor units. The borders, and between them.
_TIERS = {
    "USD": (3_500, 5_000, 5_001, 42_000, 50_001, 99_999, 100_000, 100_001, 185_000, 4_999_999),
    "EUR": (4_999, 5_000, 5_001, 42_000, 100_000, 100_001, 250_000),
    "JPY": (7_500, 7_501, 12_500, 150_000, 150_001),
    "KWD": (1, 1_234, 45_500, 1_500_000),
}
_NONSENSE = ("-5", "1e3", "4,20", "lots", "0", "0.00", "7 XXX", "1.2345678", "NaN", "\u0665")


def _money(random: Random) -> dict[str, Any]:
    """What was paid and refunded before, and how much is asked for."""
    currency = random.choices(tuple(_CURRENCIES), tuple(_CURRENCIES.values()))[0]
    total = random.choice(_TIERS[currency])
    money: dict[str, Any] = {"currency": currency, "total_minor": total}
    if random.random() < 0.10:
        money["refunded_before_minor"] = random.choice((total, total // 2, total // 7))
    left = total - money.get("refunded_before_minor", 0)
    # A part leaves more on the payment, so that the tier stays as drawn.
    part, above = (
        {"total_minor": total + random.randint(1, total)},
        left + random.randint(1, left + 1),
    )
    asked = random.choices(("all", "part", "too much", "nonsense"), (72, 22, 3, 3))[0]
    if asked == "part" and left:
        money |= part | {"asked": _typed(left, currency)}
    elif asked == "too much":
        money["asked"] = _typed(above, currency)
    elif asked == "nonsense":
        money["asked"] = random.choice(_NONSENSE)
    if random.random() < 0.05:
        money["delivered_days_ago"] = random.choice((29, 31, 75))
    return money


def _typed(minor: int, currency: str) -> str:
    return f"{Money(amount_minor=minor, currency=currency).decimal:f}"


_DECISIONS = {
    Decision.APPROVE: 56,
    Decision.APPROVE_AT_ONCE: 14,
    Decision.REJECT: 7,
    Decision.BOTH: 6,
    Decision.WITHDRAW: 6,
    Decision.CANCEL: 5,
    Decision.NOBODY: 6,
}


def _decision(random: Random, _: Plan) -> list[Piece]:
    return [{"decision": random.choices(tuple(_DECISIONS), tuple(_DECISIONS.values()))[0]}]


def _letter(random: Random, _: Plan) -> list[Piece]:
    return [{"letter": LETTERS[random.choice(tuple(LETTERS))]}]


def _hand_refund(random: Random, plan: Plan) -> list[Piece]:
    """A part, all that is asked for, or more where the payment has more."""
    due, left = due_minor(plan), plan.total_minor - plan.refunded_before_minor
    minor = random.choice((max(1, due // 3), due, min(left, due + 1)))
    return [Step(at=AT_WAIT, do="hand_refund", minor=minor)]


def _right_lost(random: Random, _: Plan) -> list[Piece]:
    return [Step(at=random.choice((AT_WAIT, "recheck:before")), do="lose_right")]


def _time(random: Random, _: Plan) -> list[Piece]:
    return [Step(at=AT_WAIT, do="pass_time", hours=random.choice((1, 25, 50, 96, 160)))]


def _reset(_: Random, __: Plan) -> list[Piece]:
    return [Step(at=AT_WAIT, do="reset")]


def _terminate(_: Random, __: Plan) -> list[Piece]:
    return [Step(at=AT_WAIT, do="terminate")]


def _dispute(random: Random, _: Plan) -> list[Piece]:
    return [Step(at=random.choice((AT_WAIT, "recheck:before")), do="dispute")]


def _later(seconds: int) -> dict[str, Any]:
    return {"what": "status", "status": 429, "headers": {"Retry-After": str(seconds)}}


_IN_USE = {
    "error": {
        "type": "idempotency_error",
        "code": "idempotency_key_in_use",
        "message": "Another request with this key is still going through.",
    }
}
# A call that hangs is in none of these: only the client's own time-out of 20 seconds ends it.
_CREATING: tuple[dict[str, Any], ...] = (
    {"what": "drop_before"},
    {"what": "drop_after"},
    {"what": "delay", "seconds": 0.5},
    {"what": "delay", "seconds": 2},
    {"what": "status", "status": 409, "body": _IN_USE, "times": 2},
    _later(1),
    _later(2),
    {"what": "status", "status": 500},
    {"what": "status", "status": 503, "times": 2},
    {"what": "status", "status": 500, "stored": True},
    {"what": "ok_without_effect"},
)
_READING: tuple[dict[str, Any], ...] = (
    {"what": "drop_before"},
    {"what": "delay", "seconds": 1.5},
    {"what": "status", "status": 500, "times": 2},
    {"what": "status", "status": 200, "body": "<html>Busy</html>"},
    _later(1),
)
_READINGS = ("orders.get", "payment_intents.retrieve", "refunds.list", "refunds.retrieve")
# What a new refund is, and what becomes of it.
_LIVES = (
    ("pending", "succeeded"),
    ("pending", "failed"),
    ("pending", "in_review"),
    ("requires_action", "succeeded"),
    ("requires_action", "canceled"),
    ("requires_action", "failed"),
)


def _provider(random: Random, plan: Plan) -> list[Piece]:
    """The call that pays, those that read, what becomes of the refund, or a forgotten key."""
    creating = Fault(operation="refunds.create", **random.choice(_CREATING))
    reading = Fault(
        operation=random.choice(_READINGS), call=random.randint(1, 2), **random.choice(_READING)
    )
    first, then = random.choice(_LIVES)
    paying = next((effect for effect in effects(plan) if effect.startswith("refund.")), "refund.r1")
    forgotten: list[Piece] = [
        Step(at=f"{paying}:before", do="forget_keys"),
        Fault(operation="refunds.create", what="drop_after"),
    ]
    drawn: tuple[list[Piece], ...] = (
        [creating],
        [creating, reading],
        [reading],
        [{"first_status": first, "settles": then}],
        [{"fails_late": True}],
        forgotten,
    )
    return random.choices(drawn, (8, 3, 3, 7, 2, 2))[0]


_MAILING: tuple[dict[str, Any], ...] = (
    {"what": "drop_before"},
    {"what": "drop_after"},
    {"what": "delay", "seconds": 1},
    {"what": "status", "status": 451, "times": 2},
    {"what": "status", "status": 550},
    {"what": "ok_without_effect"},
)


def _mail(random: Random, plan: Plan) -> list[Piece]:
    """One mail of the run, or two."""
    mails = [effect for effect in effects(plan) if effect.startswith("mail.")]
    hit = random.sample(mails, min(len(mails), random.choice((1, 1, 2))))
    return [Fault(operation="send", purpose=mail, **random.choice(_MAILING)) for mail in hit]


_NOTING: tuple[dict[str, Any], ...] = (
    {"what": "drop_before", "times": 2},
    {"what": "drop_after"},
    {"what": "delay", "seconds": 1},
    {"what": "status", "status": 500, "times": 2},
    {"what": "status", "status": 409, "body": {"error": "another_refund_under_this_key"}},
    _later(1),
)


def _order_service(random: Random, _: Plan) -> list[Piece]:
    """The order service, when it is told of a refund; its 409 is final."""
    return [Fault(operation="orders.note_refund", **random.choice(_NOTING))]


_ASKING: tuple[dict[str, Any], ...] = (
    {"what": "drop_before", "times": 2},
    {"what": "drop_after"},
    {"what": "delay", "seconds": 2},
    {"what": "status", "status": 500, "times": 3},
    _later(1),
)


def _model(random: Random, _: Plan) -> list[Piece]:
    """A model that cannot be had for a while, or that says harmful things once or for ever."""
    if random.random() < 0.4:
        return [Fault(operation="chat", call=random.randint(1, 2), **random.choice(_ASKING))]
    said = ANSWERS[random.choice(tuple(ANSWERS))]
    often: dict[str, Any] = random.choice(({"call": 1}, {"call": 2}, {"call": "every"}))
    return [Fault(operation="chat", what="status", status=200, body=said, **often)]


def _resting(plan: Plan) -> list[str]:
    """Where nobody is held. Most of a run's life is the wait."""
    return [AT_START, *([AT_WAIT] * 3 if waits(plan) else [])]


# How many of the kills of the company come while it works on a call.
_IN_THE_MIDDLE = 0.3


def _kill(random: Random, plan: Plan) -> list[Piece]:
    """One process or several at once, at one to three places of the run."""
    where = [*_resting(plan), *places(plan)]
    steps: list[Piece] = []
    for place in random.sample(where, random.choice((1, 1, 2, 3))):
        count = random.choices((1, 2, 3), (8, 2, 1))[0]
        who = tuple(random.sample(tuple(Process), count))
        if Process.COMPANY in who and random.random() < _IN_THE_MIDDLE:
            steps.append(Step(at=random.choice(places_inside(plan)), do="kill", who=who))
        else:
            steps.append(Step(at=place, do="kill", who=who))
    return steps


def _stop(random: Random, plan: Plan) -> list[Piece]:
    where = [*_resting(plan), *places(plan)]
    return [Step(at=random.choice(where), do="stop", who=(Process.WORKER,))]


def _join(random: Random, plan: Plan) -> list[Piece]:
    return [Step(at=random.choice([*_resting(plan), *places(plan)]), do="join")]


_FLOOD = 20


def _messages(random: Random, plan: Plan) -> list[Piece]:
    """One to three messages that must not count, or a flood of one of them."""
    where = _resting(plan) + [place for place in places(plan) if place.startswith("recheck:")]
    if random.random() < 0.12:
        flood = Step(at=random.choice(where), do="send", message=random.choice(tuple(Message)))
        return [flood] * _FLOOD
    return [
        Step(at=random.choice(where), do="send", message=random.choice(tuple(Message)))
        for _ in range(random.randint(1, 3))
    ]


# The chance of each group, in this order: what changes the run's course comes before what strikes
# at places of it.
_GROUPS: tuple[tuple[float, Group], ...] = (
    (1.00, _decision),
    (0.06, _letter),
    (0.15, _hand_refund),
    (0.04, _dispute),
    (0.22, _right_lost),
    (0.17, _time),
    (0.10, _reset),
    (0.10, _terminate),
    (0.42, _provider),
    (0.16, _mail),
    (0.12, _model),
    (0.25, _kill),
    (0.08, _stop),
    (0.08, _join),
    (0.27, _messages),
    (0.06, _order_service),
)
