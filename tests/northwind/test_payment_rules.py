"""Whatever is asked in whatever order, no more is refunded than was captured."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from northwind.books import read_books
from northwind.payment_objects import UNDONE, PaymentError
from northwind.payments import RefundRequest, create_refund, move_refund
from northwind.seed import Story, seed_order
from northwind.systems import Systems, open_systems

CAPTURED = 1000
STATUSES = ("succeeded", "pending", "requires_action", "failed", "canceled", "a_new_word")

creates = st.tuples(st.none() | st.integers(1, CAPTURED + 1), st.sampled_from(STATUSES))
moves = st.tuples(st.integers(0, 9), st.sampled_from(STATUSES))
steps = st.lists(st.one_of(creates.map(lambda c: ("create", c)), moves.map(lambda m: ("move", m))))


Step = tuple[str, tuple[int | None, str]]


def take_step(systems: Systems, known: dict[str, tuple[int, str]], step: Step) -> None:
    """Do one step, and expect of it what the refunds that are known by now allow."""
    left = CAPTURED - sum(amount for amount, status in known.values() if status not in UNDONE)
    kind, (number, status) = step
    with systems.store.transaction() as db:
        if kind == "create":
            db.execute("update payments set next_refund_status = ?", (status,))
            answer = create_refund(db, RefundRequest("pi_1", None, number, None, {}), now=0)
            assert (answer.status == 200) == (left > 0 and (number or left) <= left)
            if answer.status == 200:
                assert answer.body["amount"] == (number or left)
                known[answer.body["id"]] = (answer.body["amount"], status)
        elif known:
            refund = list(known)[(number or 0) % len(known)]
            amount, before = known[refund]
            revives = before in UNDONE and status not in UNDONE
            try:
                move_refund(db, refund, status, None)
                moved = True
            except PaymentError:
                moved = False
            assert moved == (not revives or amount <= left)
            if moved:
                known[refund] = (amount, status)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(steps)
def test_never_more_than_captured(taken: list[Step]) -> None:
    """Creates and later changes of status are allowed exactly as far as the money reaches."""
    systems = open_systems(Path(":memory:"))
    try:
        with systems.store.transaction() as db:
            seed_order(db, Story("1", "Ada Park", "Cup", CAPTURED), systems.clock.now())
        known: dict[str, tuple[int, str]] = {}
        for step in taken:
            take_step(systems, known, step)
            with systems.store.transaction() as db:
                payment = read_books(db)["payments"]["pi_1"]
            assert payment["refunded_minor"] + payment["pending_minor"] <= CAPTURED
    finally:
        systems.store.close()
