"""Any sequence of decisions, withdrawals and changes of the world, held against plain rules.

Hypothesis makes the sequences; the run is real, on a real server whose time can be moved on. What a
sequence did is printed step by step when it fails, and the same sequences are made in every run.
"""

import asyncio
import time
import uuid
from collections.abc import Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from temporalio.service import RPCError
from temporalio.testing import WorkflowEnvironment

from domain.models import Stage
from domain.names import SIGNAL_WITHDRAW
from domain.request import Proposal
from domain.statements import SignedStatement
from domain.trail import RunStatus
from northwind.seed import write_private_key
from tests.signing import GRACE, MARIA, SAM, TOM
from tests.workflows.rules import HOUR, Key, Member, Rules, Said
from tests.world import Run, World, check_history

PEOPLE = (MARIA, TOM, GRACE, SAM)
SEEDED = {
    MARIA: (["manager"], 100_000),
    TOM: (["manager"], 50_000),
    GRACE: (["finance_director"], 5_000_000),
    SAM: (["support"], 0),
}
CHANGES = ("leaves", "comes back", "is cut", "is trusted", "is promoted")
Answer = TypeVar("Answer")
anybody = st.sampled_from(PEOPLE)
# Else most requests would be over before two people have approved them.
rarely = st.sampled_from([True, False, False])


class Machine(RuleBasedStateMachine):
    """One request on one new order, and everything that may happen while it waits."""

    world: World
    loop: asyncio.AbstractEventLoop

    def __init__(self) -> None:
        """Begin with the staff as seeded, and no order yet."""
        super().__init__()
        self.skipped = 0.0
        self.sent: list[tuple[Said, SignedStatement]] = []
        self.counted: set[str] = set()

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do something in the test's own loop, where the world lives."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    @property
    def now(self) -> float:
        """The run's own time."""
        return time.time() + self.skipped

    @property
    def is_open(self) -> bool:
        return self.plain.outcome is None

    @initialize(
        total=st.sampled_from([42_000, 185_000, 185_000]),
        requester=st.sampled_from([SAM, SAM, SAM, MARIA, GRACE]),
        second=st.sampled_from(["comes back", "is trusted", "is promoted"]),
    )
    def begin(self, total: int, requester: str, second: str) -> None:
        """A customer's letter is handed in; the second manager has more or less to say."""
        self.staff = {
            who: Member(list(roles), limit, [Key(f"{who.partition('@')[0]}.1", since=0)])
            for who, (roles, limit) in SEEDED.items()
        }
        self._change(TOM, second)
        self.do(self._restore_staff())
        self.plain = Rules(total, requester, self.staff, began=self.now)
        self.run = self.do(self._start(total, requester))
        self._settle()

    @precondition(lambda self: self.is_open)
    @rule(who=st.sampled_from([MARIA, GRACE, TOM]))
    def approve(self, who: str) -> None:
        """An approval in good order, which is what most of them are."""
        self._decide(who, approves=True, how="well")

    @precondition(lambda self: self.is_open)
    @rule(
        who=anybody,
        approves=st.sampled_from([True, True, True, False]),
        how=st.sampled_from(["well", "well", "well", "in the future", "before the deadline",
                             "by another key", "on another proposal", "by the first key",
                             "by the first key, dated back"]),
    )  # fmt: skip
    def decide(self, who: str, approves: bool, how: str) -> None:
        """Somebody decides, rightly or not."""
        self._decide(who, approves=approves, how=how)

    def _decide(self, who: str, *, approves: bool, how: str) -> None:
        """The run's answer is the rules' answer."""
        member = self.staff[who]
        kid = f"{who.partition('@')[0]}.{1 if 'by the first key' in how else member.issued}"
        signed = self.now
        if how == "in the future":
            signed += HOUR
        elif how == "before the deadline":
            signed = min(signed, self.plain.deadline - HOUR)
        elif how == "by the first key, dated back":
            signed = self.plain.began
        said = Said(
            who,
            approves,
            float(int(signed)),
            kid,
            fits_key=how != "by another key",
            proposal="0" * 32 if how == "on another proposal" else self.proposal.proposal_id,
        )
        self._send(said, self._sign(said))

    @precondition(lambda self: self.is_open and bool(self.sent))
    @rule(choice=st.integers(0, 10**6))
    def repeat(self, choice: int) -> None:
        """An earlier decision arrives once more, maybe about an earlier proposal."""
        said, statement = self.sent[choice % len(self.sent)]
        again = Said(**{**vars(said), "repeats": statement.token in self.counted})
        self._send(again, statement)

    @precondition(lambda self: self.is_open)
    @rule(minor=st.sampled_from([1_000, 12_000, 42_000]), happens=rarely)
    def refund_by_hand(self, minor: int, happens: bool) -> None:
        """A colleague refunds a part at the provider."""
        minor = min(minor, self.plain.total - self.plain.by_hand)
        if minor and happens:
            body = {"payment": f"pi_{self.order}", "amount_minor": minor, "status": "succeeded"}
            self.do(self.world.control("hand_refund", body))
            self.plain.by_hand += minor

    @precondition(lambda self: self.is_open)
    @rule(who=anybody, hits=st.booleans(), change=st.sampled_from(CHANGES))
    def staff_changes(self, who: str, hits: bool, change: str) -> None:
        """Rights come and go while a request waits, also those of one who has approved."""
        who = self._hit(who, hits)
        self._change(who, change)
        self.do(self._tell_directory(who))

    def _hit(self, who: str, hits: bool) -> str:
        return next(iter(self.plain.approvals)) if hits and self.plain.approvals else who

    def _change(self, who: str, change: str) -> None:
        member = self.staff[who]
        match change:
            case "leaves":
                member.active = False
            case "comes back":
                member.active, member.limit = True, SEEDED[who][1]
                member.roles = list(SEEDED[who][0])
            case "is cut":
                member.limit = 100_000 if member.limit > 100_000 else member.limit // 2
            case "is trusted":
                member.limit = 5_000_000
            case "is promoted":
                member.roles, member.limit = ["finance_director"], 5_000_000

    @precondition(lambda self: self.is_open)
    @rule(who=anybody, hits=st.booleans(), lost=st.booleans())
    def key_changes(self, who: str, hits: bool, lost: bool) -> None:
        """A key is replaced by a new one, or withdrawn as of long ago, since it was stolen."""
        who = self._hit(who, hits)
        member = self.staff[who]
        for key in member.keys:
            key.until = min(key.until, 0.0 if lost else float(int(self.now) - 1))
        member.issued += 1
        kid = f"{who.partition('@')[0]}.{member.issued}"
        private = Ed25519PrivateKey.generate()
        write_private_key(self.world.company.keys / f"{who}.{member.issued}.pem", private)
        member.keys.append(Key(kid, since=float(int(self.now) - 1)))
        self.publics[kid] = _public(private)
        self.do(self._tell_directory(who))

    @precondition(lambda self: self.is_open)
    @rule(hours=st.sampled_from([25, 100, 168, 168, 170]), happens=rarely)
    def time_passes(self, hours: int, happens: bool) -> None:
        """Hours, or days, or just over the deadline, where only the grace is left."""
        if not happens:
            return
        left = self.plain.deadline - self.now
        seconds = left + 300 if hours == 168 and left > 0 else hours * HOUR
        self.do(self.run.move_on(seconds=seconds))
        self.skipped += seconds
        self.plain.pass_time(self.now)
        self._settle()

    @precondition(lambda self: self.is_open and self.staff[self.plain.requester].active)
    @rule(happens=rarely)
    def withdraw(self, happens: bool) -> None:
        """Now and then the requester takes it back."""
        who = self.plain.requester
        if not happens or self.staff[who].issued > 1:
            return
        statement = self.world.signer.withdrawal(self.run.request, by=who, at=self.now)
        answer = self.do(self.run.send(statement, SIGNAL_WITHDRAW))
        assert answer.refusal is None
        self.plain.withdraw()
        self._settle()

    @precondition(lambda self: not self.is_open)
    @rule(who=anybody)
    def come_too_late(self, who: str) -> None:
        """A closed run takes nothing more, and its sender is told so by the server (R27)."""
        with pytest.raises(RPCError, match="already completed"):
            self.do(self.run.handle.signal("decide", SignedStatement(token=who)))

    @invariant()
    def nothing_is_paid_that_is_not_approved(self) -> None:
        """The provider's books agree with the rules after every step (P1, P2)."""
        if not hasattr(self, "plain"):
            return
        paid = sum(minor for minor, _ in self.do(self.world.refunds(self.order)))
        ours = self.plain.amount if self.plain.outcome == "refunded" else 0
        assert paid == self.plain.by_hand + ours

    def teardown(self) -> None:
        """The history replays, each mail went out once, and the end is told (P3, P4, P7)."""
        if not hasattr(self, "run"):
            return
        if self.is_open:
            self.do(self.run.handle.cancel())
            self.plain.withdraw()
        ended = self.do(self.run.result())
        assert ended.outcome == self.plain.outcome
        self.do(check_history(self.run))
        books = self.do(self.world.books())
        mine = [mail for mail in books["mails"] if f"/{self.run.handle.id}/" in mail["key"]]
        keys = [mail["key"] for mail in mine]
        assert len(keys) == len(set(keys))
        told = {mail["purpose"].removeprefix("mail.") for mail in mine}
        assert ("delayed" if ended.outcome == "needs_human" else ended.outcome) in told

    def _send(self, said: Said, statement: SignedStatement) -> None:
        expected = self.plain.judge(said, self.now, self.proposal.proposal_id)
        if said.repeats or (said, statement) in self.sent:
            # A second answer to the same message is not told apart by its id: look at the counts.
            refused = self.refused
            self.do(self.run.handle.signal("decide", statement))
            if expected is not None:
                status = self.do(self.run.until(lambda s: sum(s.refused.values()) > refused))
                assert status.trail[-1].refusal == expected, f"{said}: {status.trail[-1]}"
        else:
            answer = self.do(self.run.send(statement))
            assert answer.refusal == expected, f"{said}: {answer}"
            self.sent.append((said, statement))
        if expected is None:
            self.counted.add(statement.token)
        self._settle()

    def _settle(self) -> None:
        """Wait until the run is where the rules say it must be."""
        if not self.is_open:
            ended = self.do(self.run.result())
            assert ended.outcome == self.plain.outcome, ended.explanation
            return
        status = self.do(self.run.until(self._is_there))
        assert status.proposal is not None
        assert status.deadline is not None
        # The rules know the moment of a proposal by the clock of a busy machine.
        assert abs(status.deadline.timestamp() - self.plain.deadline) < 10 * 60
        assert status.proposal.amount.amount_minor == self.plain.amount
        self.proposal: Proposal = status.proposal
        self.refused = sum(status.refused.values())

    def _is_there(self, status: RunStatus) -> bool:
        return (
            status.stage is Stage.AWAITING_APPROVAL
            and status.round == self.plain.round
            and {person.address for person in status.approved_by} == set(self.plain.approvals)
        )

    def _sign(self, said: Said) -> SignedStatement:
        number = said.kid.rpartition(".")[2]
        file = said.who if number == "1" else f"{said.who}.{number}"
        other = TOM if said.who != TOM else MARIA
        return self.world.signer.decision(
            self.proposal,
            "approve" if said.approves else "reject",
            by=said.who,
            at=said.signed,
            headers={"kid": said.kid},
            key_of=file if said.fits_key else other,
            proposal=said.proposal,
        )

    async def _start(self, total: int, requester: str) -> Run:
        self.order = f"o-{uuid.uuid4().hex[:12]}"
        order = (await self.world.http.get("/orders/8890")).json()
        order |= {"id": self.order, "payment": f"pi_{self.order}"}
        order["total"]["amount_minor"] = total
        await self.world.control("orders", order)
        return await self.world.start(self.order, requester=requester)

    async def _restore_staff(self) -> None:
        self.publics: dict[str, str] = {}
        for who, member in self.staff.items():
            private = (self.world.company.keys / f"{who}.pem").read_bytes()
            self.publics[member.keys[0].kid] = _public_of(private)
            await self._tell_directory(who)

    async def _tell_directory(self, who: str) -> None:
        member = self.staff[who]
        keys = [
            {"kid": key.kid, "algorithm": "Ed25519", "public": self.publics[key.kid],
             "valid_from": _instant(key.since),
             "valid_until": None if key.until == float("inf") else _instant(key.until),
             "signs_for": [who]}
            for key in member.keys
        ]  # fmt: skip
        limits = [{"amount_minor": member.limit, "currency": "USD"}] if member.limit else []
        changes = {"roles": member.roles, "limits": limits, "active": member.active, "keys": keys}
        await self.world.control(f"staff/{who}", changes)


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def _public_of(pem: bytes) -> str:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    private = load_pem_private_key(pem, password=None)
    assert isinstance(private, Ed25519PrivateKey)
    return _public(private)


def _public(private: Ed25519PrivateKey) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(private.public_key().public_bytes_raw()).rstrip(b"=").decode()


@pytest.mark.timeout(600)
async def test_every_sequence_of_events_follows_the_rules(
    server: WorkflowEnvironment, tmp_path: Path
) -> None:
    """P1, P2, P4: whatever happens in whatever order, the run and the books do as the rules say."""
    async with World(server, tmp_path) as world:
        Machine.world, Machine.loop = world, asyncio.get_running_loop()
        wanted = settings(
            max_examples=40,
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        )
        await asyncio.to_thread(run_state_machine_as_test, Machine, settings=wanted)
