"""A plan that failed is made smaller until only what matters is left."""

from collections.abc import Awaitable, Callable

from starters.drill.conflicts import conflict_in
from starters.drill.hostile import LETTERS
from starters.drill.plan import AT_START, AT_WAIT, Decision, Fault, Message, Plan, Process, Step
from starters.drill.shrink import Attempt, shrink

KILL = Step(at="refund.r1:done", do="kill", who=(Process.TEMPORAL, Process.WORKER))
GARBAGE = Step(at=AT_WAIT, do="send", message=Message.GARBAGE)
LOST = Fault(operation="refunds.create", what="drop_after")
BUSY = Plan(
    name="busy",
    order_id="d1-000001",
    total_minor=185_000,
    asked="420.00",
    letter=LETTERS["threatens"],
    decision=Decision.APPROVE_AT_ONCE,
    steps=(*[GARBAGE] * 20, KILL, Step(at=AT_START, do="join")),
    faults=(LOST, Fault(operation="chat", what="status", status=500)),
    fails_late=True,
)


async def _smallest(
    fails: Callable[[Plan], bool], attempts: int = 60
) -> tuple[Plan, list[Attempt], list[Plan]]:
    """The smallest plan that still fails, how it was found, and all plans that were tried."""
    tried: list[Plan] = []

    async def carried_through(plan: Plan) -> bool:
        tried.append(plan)
        return fails(plan)

    call: Callable[[Plan], Awaitable[bool]] = carried_through
    seen = [attempt async for attempt in shrink(BUSY, call, attempts)]
    return (seen[-1].smallest if seen else BUSY), seen, tried


async def test_the_one_step_that_matters_is_left() -> None:
    """Of 22 steps, two faults and an odd order, the worker's kill at its place is what is left."""

    def worker_is_killed(plan: Plan) -> bool:
        return any(s.at == KILL.at and Process.WORKER in s.who for s in plan.steps)

    smallest, seen, tried = await _smallest(worker_is_killed)
    worker = KILL.model_copy(update={"who": (Process.WORKER,)})
    assert smallest == Plan(
        name=smallest.name, order_id=BUSY.order_id, total_minor=42_000, steps=(worker,)
    )
    assert smallest.name == "shrunk: decision: approve, kill: worker"
    assert len(seen) == len(tried) < 30
    assert all(conflict_in(plan) is None for plan in tried)


async def test_what_fails_only_together_is_kept_together() -> None:
    """Two things that make it fail in company are both left, and nothing else."""

    def both(plan: Plan) -> bool:
        return LOST in plan.faults and sum(step == GARBAGE for step in plan.steps) >= 2

    smallest, _, _ = await _smallest(both)
    assert (smallest.steps, smallest.faults) == ((GARBAGE, GARBAGE), (LOST,))


async def test_a_failure_of_anything_ends_with_an_ordinary_run() -> None:
    """Where every plan fails, the smallest one is an order like any other."""
    smallest, _, _ = await _smallest(lambda plan: True)
    assert smallest == Plan(name=smallest.name, order_id=BUSY.order_id, total_minor=42_000)


async def test_a_failure_that_goes_away_leaves_the_plan() -> None:
    """A failure that shows once only is told with the plan that showed it; nothing comes twice."""
    smallest, seen, tried = await _smallest(lambda plan: False)
    assert smallest == BUSY
    assert {attempt.still_fails for attempt in seen} == {False}
    contents = [plan.model_dump_json(exclude={"name"}) for plan in tried]
    assert len(set(contents)) == len(contents)


async def test_it_comes_to_an_end() -> None:
    """After so many attempts it is enough, each told as it is done."""
    _, seen, tried = await _smallest(lambda plan: False, attempts=5)
    assert [attempt.number for attempt in seen] == [1, 2, 3, 4, 5]
    assert len(tried) == 5


async def test_no_plan_without_sense_is_tried() -> None:
    """The second round comes of the refund by hand: without it, its kill would never happen."""
    by_hand = Step(at=AT_WAIT, do="hand_refund", minor=2_000)
    kill = Step(at="refund.r2:done", do="kill", who=(Process.WORKER,))
    plan = Plan(name="", order_id="d1-000001", total_minor=42_000, steps=(by_hand, kill))
    tried: list[Plan] = []

    async def fails(smaller: Plan) -> bool:
        tried.append(smaller)
        return kill in smaller.steps

    seen = [attempt async for attempt in shrink(plan, fails)]
    assert seen
    assert seen[-1].smallest.steps == (by_hand, kill)
    assert [smaller for smaller in tried if conflict_in(smaller) is not None] == []
