"""`refund retry`: a request that ended with a person goes on, under its own id (design, 4)."""

from typing import Any

from domain.models import Outcome, Stage
from domain.outcomes import Reason
from domain.trail import Refusal, RunStatus
from starters.errors import Exit
from tests.signing import GRACE, MARIA
from tests.starters.conftest import Typed
from tests.world import Run, World

_NO = {"error": {"type": "invalid_request_error", "code": "charge_not_refundable",
                 "message": "This charge cannot be refunded."}}  # fmt: skip


async def refused_by_the_provider(world: World, order: str = "8890", **asked: Any) -> Run:
    """An approved run that ended with a person; what the provider had against it is mended."""
    fault = {"system": "payments", "operation": "refunds.create", "what": "status",
             "call": "every", "status": 400, "body": _NO}  # fmt: skip
    await world.control("faults", [fault])
    run = await world.start(order, **asked)
    if asked.get("amount") != "20.00":
        await run.approve(by=MARIA)
    if order == "8892":
        await run.approve(by=GRACE)
    ended = await run.result()
    assert (ended.outcome, ended.reason) == (Outcome.NEEDS_HUMAN, Reason.PROVIDER_REFUSED)
    await world.http.delete("/control/faults")
    return run


def open_run(world: World, run: Run) -> Run:
    """The newest run of the same order."""
    handle = world.client.get_workflow_handle(run.handle.id, result_type=RunStatus)
    again = Run(world, run.request, handle)
    world.runs.append(again)
    return again


def asked(mails: dict[str, int]) -> dict[str, int]:
    """Mails to approvers alone."""
    return {name: count for name, count in mails.items() if name.startswith("approval_request")}


async def test_a_retry_pays_once_on_the_approval_that_was_given(typed: Typed, world: World) -> None:
    """P1, P3: nobody is asked twice for the same proposal, and a customer hears each thing once."""
    run = await refused_by_the_provider(world)
    done = await typed("retry", "8890", "--wait")

    assert done.code == Exit.DONE, done.err
    assert f"Request {run.request.request_id} goes on, retry 1" in done.out
    assert await world.refunds() == [(42000, "succeeded")]
    mails = await world.mails()
    assert (mails["under_review"], mails["delayed"], mails["refunded"]) == (1, 1, 1)
    assert asked(mails) == {"approval_request.r1": 1}
    assert "It waits for" not in done.out
    told = await world.mail("alert.provider_refused")
    assert "    refund retry 8890" in told["text"]
    assert f"Request: {run.request.request_id}" in told["text"]
    ended = await open_run(world, run).result()
    before = await run.result()
    assert ended.outcome is Outcome.REFUNDED
    assert ended.proposal == before.proposal
    assert [entry.who for entry in ended.trail if entry.what == "approved"] == [MARIA]


async def test_both_approvals_of_a_large_refund_go_on(typed: Typed, world: World) -> None:
    """The pair is judged again and still is one."""
    run = await refused_by_the_provider(world, "8892")
    done = await typed("retry", run.handle.id, "--wait", "--json")
    assert done.data["status"]["outcome"] == "refunded"
    assert await world.refunds("8892") == [(185_000, "succeeded")]


async def test_an_approver_who_lost_the_right_meanwhile_is_replaced(
    typed: Typed, world: World
) -> None:
    """P2, R13: what counted before is judged as of now, and others are asked anew."""
    run = await refused_by_the_provider(world)
    await world.control(f"staff/{MARIA}", {"active": False})
    assert (await typed("retry", "8890")).code == Exit.DONE
    again = open_run(world, run)
    status = await again.until(lambda s: s.refused == {Refusal.NOT_ACTIVE: 1})
    assert status.stage is Stage.AWAITING_APPROVAL
    assert await world.refunds() == []
    await again.approve(by=GRACE)
    assert (await again.result()).outcome is Outcome.REFUNDED
    assert asked(await world.mails()) == {"approval_request.r1": 1, "approval_request.r1.retry1": 1}


async def test_a_changed_world_is_approved_anew(typed: Typed, world: World) -> None:
    """P2: an approval of $420.00 is none of the $300.00 that are left; the round goes on."""
    run = await refused_by_the_provider(world)
    await world.control("hand_refund", {"payment": "pi_8890", "amount_minor": 12000})
    assert (await typed("retry", "8890")).code == Exit.DONE
    again = open_run(world, run)
    proposal = await again.waiting()
    status = await again.until(lambda s: bool(s.refused))
    assert status.refused == {Refusal.OTHER_PROPOSAL: 1}
    assert (proposal.amount.amount_minor, proposal.round) == (30000, 2)
    await again.approve()
    ended = await again.result()
    assert await world.refunds() == [(12000, "succeeded"), (30000, "succeeded")]
    assert ended.refund is not None
    assert str(ended.refund.key).endswith(f"/{run.request.request_id}/refund.r2")


async def test_a_retry_that_fails_again_tells_operations_again(typed: Typed, world: World) -> None:
    """P4: each retry has its own alert; the customer hears once that it takes longer.

    The second retry still knows the approval.
    """
    run = await refused_by_the_provider(world)
    fault: dict[str, Any] = {"system": "payments", "operation": "refunds.create", "what": "status",
                             "call": 1, "status": 400, "body": _NO}  # fmt: skip
    await world.control("faults", [fault])
    first = await typed("retry", "8890", "--wait", "--json")
    assert first.data["status"]["reason"] == Reason.PROVIDER_REFUSED
    mails = await world.mails()
    assert (mails["alert.provider_refused"], mails["alert.provider_refused.retry1"]) == (1, 1)
    assert [mail for mail in mails.elements() if mail.startswith("delayed")] == ["delayed"]

    second = await typed("retry", "8890", "--wait", "--json")
    assert second.data["status"]["outcome"] == "refunded"
    assert second.data["request_id"] == run.request.request_id
    assert await world.refunds() == [(42000, "succeeded")]


async def test_a_refund_that_came_to_its_end_later_is_confirmed(typed: Typed, world: World) -> None:
    """P1, P8: pending for a month is for a person; when it has succeeded, nothing is paid again."""
    await world.control("payments/pi_8890", {"next_refund_status": "pending"})
    run = await world.start()
    await run.approve()
    await run.until(lambda s: s.stage is Stage.VERIFYING)
    await run.move_on(days=32)
    ended = await run.result()
    assert (ended.reason, ended.refund is not None) == (Reason.REFUND_PENDING_TOO_LONG, True)
    assert ended.refund is not None

    await world.control(f"refunds/{ended.refund.id}", {"status": "succeeded"})
    done = await typed("retry", "8890", "--wait", "--json")
    assert done.data["status"]["outcome"] == "refunded"
    assert await world.refunds() == [(42000, "succeeded")]
    mails = await world.mails()
    assert (mails["refunded"], mails["delayed"]) == (1, 1)
    assert asked(mails) == {"approval_request.r1": 1}


async def test_what_did_not_end_with_a_person_is_not_retried(typed: Typed, world: World) -> None:
    """P7: open, paid, ended from outside, unknown: four messages and three exit codes."""
    run = await world.start("8891")
    assert (await run.result()).outcome is Outcome.REFUNDED
    paid = await typed("retry", "8891")
    assert (paid.code, "refunded" in paid.err) == (Exit.REFUSED, True)

    waits = await world.start()
    await waits.waiting()
    still_open = await typed("retry", "8890")
    assert (still_open.code, "still running" in still_open.err) == (Exit.ALREADY_RUNNING, True)

    killed = await world.start("8899")
    await killed.waiting()
    await killed.handle.terminate("a test")
    ended = await typed("retry", "8899")
    assert ended.code == Exit.REFUSED
    assert "--request-id" in ended.err

    unknown = await typed("retry", "7777")
    assert unknown.code == Exit.NO_SUCH_RUN


async def test_a_refund_by_hand_meanwhile_is_not_paid_again(typed: Typed, world: World) -> None:
    """P1, R7: a colleague who pays what the run could not has done what the request asked for."""
    run = await refused_by_the_provider(world, amount="20.00")
    await world.control("hand_refund", {"payment": "pi_8890", "amount_minor": 2000})
    done = await typed("retry", "8890", "--wait", "--json")
    assert done.data["status"]["reason"] == Reason.REFUNDED_BY_HAND
    assert await world.refunds() == [(2000, "succeeded")]
    assert done.data["request_id"] == run.request.request_id


async def test_a_part_by_hand_meanwhile_leaves_the_rest(typed: Typed, world: World) -> None:
    """R7: the amount that was typed is still the claim, less what others have paid of it."""
    run = await refused_by_the_provider(world, amount="420.00")
    await world.control("hand_refund", {"payment": "pi_8890", "amount_minor": 12000})
    assert (await typed("retry", "8890")).code == Exit.DONE
    again = open_run(world, run)
    proposal = await again.waiting()
    assert (proposal.amount.amount_minor, proposal.round) == (30000, 2)


async def test_a_refund_on_the_payment_of_then_is_found(typed: Typed, world: World) -> None:
    """P1: an order that is paid anew meanwhile does not hide the refund that was made."""
    await world.control("payments/pi_8890", {"next_refund_status": "odd"})
    run = await world.start()
    await run.approve()
    ended = await run.result()
    assert ended.reason == Reason.STATUS_UNKNOWN
    assert ended.refund is not None
    await world.control(f"refunds/{ended.refund.id}", {"status": "succeeded"})
    await world.control("orders/8890", {"payment": "pi_8899"})
    done = await typed("retry", "8890", "--wait", "--json")
    assert done.data["status"]["outcome"] == "refunded"
    assert done.data["status"]["refund"]["id"] == ended.refund.id
    assert await world.refunds("8899") == []
