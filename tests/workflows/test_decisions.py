"""Which decision counts: signed, by the right person, on this proposal, once (P2, P4)."""

import time
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from domain.models import Outcome, Stage
from domain.names import SIGNAL_DECIDE
from domain.request import Proposal
from domain.statements import SignedStatement
from domain.trail import Refusal
from tests.signing import GRACE, MARIA, SAM, TOM, VICTOR, Signer
from tests.world import Run, World

REFUSED: dict[str, tuple[dict[str, Any], Refusal]] = {
    "by the support agent who asked": ({"by": SAM}, Refusal.IS_REQUESTER),
    "by the manager who left": ({"by": VICTOR}, Refusal.KEY_NOT_VALID),
    "signed with another person's key": ({"key_of": TOM}, Refusal.BAD_SIGNATURE),
    "under a key id nobody has": ({"headers": {"kid": "maria.silva.9"}}, Refusal.UNKNOWN_KEY),
    "under a key id that is a path": ({"headers": {"kid": "../../keys/x"}}, Refusal.UNKNOWN_KEY),
    "on another proposal": ({"proposal": "0" * 32}, Refusal.OTHER_PROPOSAL),
    "for another order's run": ({"sub": "refund-order-8891"}, Refusal.OTHER_RUN),
    "for another environment": ({"env": "production"}, Refusal.OTHER_ENVIRONMENT),
    "signed an hour from now": ({"at": time.time() + 3600}, Refusal.FROM_THE_FUTURE),
}


@pytest.mark.parametrize("case", REFUSED, ids=[name.replace(" ", "-") for name in REFUSED])
async def test_a_decision_that_does_not_count_is_answered_and_changes_nothing(
    world: World, case: str
) -> None:
    """P2, P4: refused with its reason, nothing is paid, and the right person still can decide."""
    how, reason = REFUSED[case]
    run = await world.start()
    answer = await run.approve(**how)

    assert answer.refusal is reason
    assert (await run.status()).stage is Stage.AWAITING_APPROVAL
    assert await world.refunds() == []
    assert (await run.approve()).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED


async def test_the_requester_cannot_approve_by_spelling_the_address_otherwise(world: World) -> None:
    """R12: other case and a +tag make no other person; another manager still can."""
    run = await world.start(requester=MARIA)
    refused = await run.approve(by=MARIA)
    assert refused.refusal is Refusal.IS_REQUESTER
    assert (await run.approve(by=TOM)).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED


async def test_an_approver_over_the_limit_is_refused_and_another_one_is_not(world: World) -> None:
    """P2: a limit covers the amount with the earlier refunds on the order."""
    run = await world.start("8899", amount="600.00")
    assert (await run.approve(by=TOM)).refusal is Refusal.OVER_LIMIT
    assert (await run.approve(by=GRACE)).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds("8899") == [(60000, "succeeded")]


async def test_a_decision_sent_twice_counts_once(world: World) -> None:
    """P1, P4: the second copy is answered as a duplicate or as too late, and one refund is made."""
    run = await world.start()
    decision = world.signer.decision(await run.waiting())
    await run.handle.signal(SIGNAL_DECIDE, decision)
    await run.handle.signal(SIGNAL_DECIDE, decision)
    ended = await run.result()

    assert [entry.what for entry in ended.trail].count("approved") == 1
    assert ended.refused == {Refusal.DUPLICATE: 1}
    assert await world.refunds() == [(42000, "succeeded")]


@pytest.mark.parametrize("first", ["approve", "reject"])
async def test_approve_and_reject_together_the_first_one_wins(world: World, first: str) -> None:
    """R10: two answers in one workflow task, in either order; the other one has its reason."""
    second = {"approve": "reject", "reject": "approve"}[first]
    run = await world.start()
    proposal = await run.waiting()
    await world.stop_worker()
    await run.handle.signal(SIGNAL_DECIDE, world.signer.decision(proposal, first, by=MARIA))
    await run.handle.signal(SIGNAL_DECIDE, world.signer.decision(proposal, second, by=TOM))
    await world.start_worker()
    ended = await run.result()

    assert ended.outcome is (Outcome.REFUNDED if first == "approve" else Outcome.REJECTED)
    assert sum(ended.refused.values()) == 1
    assert len(await world.refunds()) == (1 if first == "approve" else 0)


async def test_a_decision_before_the_first_task_is_kept_and_approves_nothing_unseen(
    world: World,
) -> None:
    """R9: it is visible at once, and a guess at a proposal does not count once there is one."""
    request = world.request()
    guess = _guess(world.signer)
    await world.stop_worker()
    run = await world.start_with(request)
    await run.handle.signal(SIGNAL_DECIDE, guess)
    await world.start_worker()
    await run.waiting()
    status = await run.until(lambda s: bool(s.refused))

    assert "decision_kept" in [entry.what for entry in status.trail]
    assert status.refused == {Refusal.OTHER_PROPOSAL: 1}
    assert status.stage is Stage.AWAITING_APPROVAL


def _json(data: bytes) -> RawValue:
    return RawValue(Payload(metadata={"encoding": b"json/plain"}, data=data))


GARBAGE: dict[str, list[Any]] = {
    "no payload": [],
    "two payloads": ["one", "two"],
    "text": ["approve"],
    "null": [None],
    "a list": [["approve"]],
    "a number": [7],
    "an empty object": [{}],
    "an object without a token": [{"verdict": "approve"}],
    "an empty token": [{"token": ""}],
    "a token of dots": [{"token": "..."}],
    "a token that is no text": [{"token": 5}],
    "a megabyte": ["x" * 1_000_000],
    "broken JSON": [_json(b"{nope")],
    "bytes that are no text": [_json(b"\xff\xfe")],
    "deeply nested JSON": [_json(b"[" * 100_000)],
    "an unknown encoding": [RawValue(Payload(metadata={"encoding": b"x/y"}, data=b"zz"))],
    "no encoding at all": [RawValue(Payload(data=b"zz"))],
    "unreadable ones, two of them": [_json(b"{"), _json(b"{")],
}


async def test_garbage_is_answered_and_the_run_stays_decidable(world: World) -> None:
    """R3, R4, P7: every garbage signal is counted with its reason, and no workflow task fails."""
    run = await world.start()
    await run.waiting()
    for arguments in GARBAGE.values():
        await run.handle.signal(SIGNAL_DECIDE, args=arguments)
    status = await run.until(lambda s: s.refused.get(Refusal.MALFORMED) == len(GARBAGE))

    assert status.stage is Stage.AWAITING_APPROVAL
    assert await world.refunds() == []
    assert (await run.approve()).what == "approved"
    assert (await run.result()).outcome is Outcome.REFUNDED


async def test_a_signal_under_a_name_nobody_knows_is_answered_too(world: World) -> None:
    """P4: a misspelt signal is not dropped without a word."""
    run = await world.start()
    await run.waiting()
    await run.handle.signal("aprove", "yes")
    status = await run.until(lambda s: s.refused.get(Refusal.UNKNOWN_SIGNAL) == 1)

    refused = [entry.detail for entry in status.trail if entry.refusal]
    assert refused == ["there is no signal 'aprove'"]


async def test_an_unsigned_decision_does_not_count(world: World) -> None:
    """P2: `alg: none` is no signature."""
    run = await world.start()
    await run.waiting()
    unsigned = "eyJhbGciOiJub25lIiwidHlwIjoibm9ydGh3aW5kLWRlY2lzaW9uK2p3dCIsImtpZCI6Im0ifQ.e30."
    await run.handle.signal(SIGNAL_DECIDE, SignedStatement(token=unsigned))
    status = await run.until(lambda s: bool(s.refused))

    assert status.refused == {Refusal.MALFORMED: 1}
    assert await world.refunds() == []


async def test_a_hundred_forgeries_are_counted_exactly_and_kept_in_bounds(world: World) -> None:
    """P4: the counts are exact, the detail is bounded, and the run can still be decided."""
    run = await world.start()
    await run.waiting()
    for _ in range(100):
        await run.handle.signal(SIGNAL_DECIDE, "forged")
    status = await run.until(lambda s: s.refused.get(Refusal.MALFORMED) == 100)

    assert len([entry for entry in status.trail if entry.refusal]) == 50
    assert (await run.approve()).what == "approved"


def _guess(signer: Signer) -> SignedStatement:
    """A decision on a proposal that nobody has seen."""
    proposal = Proposal.model_validate(
        {
            "proposal_id": "f" * 32,
            "round": 1,
            "order_id": "8890",
            "payment": "pi_8890",
            "amount": {"amount_minor": 42000, "currency": "USD"},
            "taken_before": {"amount_minor": 0, "currency": "USD"},
            "policy_version": "1",
            "approvals_needed": 1,
        }
    )
    return signer.decision(proposal)


async def test_a_closed_run_takes_no_decision(world: World) -> None:
    """R27: the server itself answers that the run is over."""
    run: Run = await world.start()
    proposal = await run.waiting()
    await run.approve()
    await run.result()
    with pytest.raises(Exception, match="already completed"):
        await run.handle.signal(SIGNAL_DECIDE, world.signer.decision(proposal))
