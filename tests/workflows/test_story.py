"""The story: $420.00 back on order 8890, with a manager's approval."""

from domain.models import Outcome, Stage
from tests.counting import cost_of
from tests.signing import MARIA
from tests.world import BOTH_MODES, World

pytestmark = BOTH_MODES


async def test_a_refund_with_approval_pays_once_and_writes_three_mails(world: World) -> None:
    """P1, P3: one refund of $420.00, noted once, one mail of each purpose, to the right people."""
    run = await world.start()
    answer = await run.approve()
    ended = await run.result()

    assert answer.what == "approved"
    assert (ended.outcome, ended.stage) == (Outcome.REFUNDED, Stage.CLOSED)
    assert await world.refunds() == [(42000, "succeeded")]
    assert await world.mails() == {"under_review": 1, "approval_request.r1": 1, "refunded": 1}
    assert (await world.mail("refunded"))["to"] == ["ada.park@customers.example"]
    assert MARIA in (await world.mail("approval_request.r1"))["to"]
    review = (await world.mail("under_review"))["text"]
    assert "under review: Maria Silva or Tom Becker will decide on it." in review
    [noted] = (await world.books())["orders"]["8890"]
    assert (noted["amount"]["amount_minor"], noted["times"]) == (42000, 1)


async def test_nothing_is_paid_before_a_person_has_decided(world: World) -> None:
    """P2: while the run waits, the provider has made no refund and the customer hears of review."""
    run = await world.start()
    await run.waiting()
    await world.until(lambda: _mails(world, 2))

    assert await world.refunds() == []
    assert await world.mails() == {"under_review": 1, "approval_request.r1": 1}


async def test_a_small_refund_needs_nobody(world: World) -> None:
    """P2: up to $50.00 the policy asks for no approval, so the run pays and confirms."""
    run = await world.start("8891")
    ended = await run.result()

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds("8891") == [(3500, "succeeded")]
    assert await world.mails() == {"refunded": 1}


async def test_a_refund_costs_what_it_should(world: World) -> None:
    """A whole refund takes 17 billed Actions, at most 90 events and 40 KB of history."""
    run = await world.start()
    await run.approve()
    await run.result()
    cost = cost_of(await run.history())

    assert cost.actions == 17, cost
    assert cost.events <= 90, cost
    assert cost.size <= 40_000, cost


async def test_the_provider_is_told_whose_refund_it_is(world: World) -> None:
    """P1: the refund carries the key by which a later attempt finds it."""
    run = await world.start()
    await run.approve()
    await run.result()
    refund = (await world.books())["payments"]["pi_8890"]["refunds"][0]

    scope = f"local/refund-order-8890/{run.request.request_id}/"
    assert refund["metadata"]["northwind_key"] == f"{scope}refund.r1"


async def test_currencies_keep_their_own_decimals(world: World) -> None:
    """R29: 12500 yen stay 12500 yen at the provider and in the customer's mail."""
    run = await world.start("8893")
    await run.approve()
    ended = await run.result()

    assert ended.outcome is Outcome.REFUNDED
    assert await world.refunds("8893") == [(12500, "succeeded")]
    text = (await world.mail("refunded"))["text"]
    assert "12,500" in text
    assert "125.00" not in text


async def _mails(world: World, count: int) -> bool:
    return (await world.mails()).total() >= count
