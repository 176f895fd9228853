"""Who must hear of a refund that failed after its run had ended (report R5)."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.names import (
    idempotency_key,
    is_identifier,
    read_refund_key,
    refund_purpose,
    request_scope,
    sweep_scope,
)
from domain.sweep import ALERT, CONFIRMED, CORRECTION, FAILURE_TOLD, WATCHED, Duty, duty

IDS = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True).filter(is_identifier)

TABLE: list[tuple[str, dict[str, bool], Duty]] = [
    ("told that it was made", {CONFIRMED: True}, Duty.CORRECT),
    ("told, by a mail nobody knows the end of", {CONFIRMED: False}, Duty.CORRECT),
    ("the alert alone went out", {CONFIRMED: True, ALERT: True}, Duty.CORRECT),
    ("the correction alone went out", {CONFIRMED: True, CORRECTION: True}, Duty.CORRECT),
    ("a correction is half sent", {CONFIRMED: True, CORRECTION: False, ALERT: True}, Duty.CORRECT),
    ("all is said", {CONFIRMED: True, CORRECTION: True, ALERT: True}, Duty.NOTHING),
    ("the run told the failure", {FAILURE_TOLD: True}, Duty.NOTHING),
    ("the run, reset, told it after all", {CONFIRMED: True, FAILURE_TOLD: True}, Duty.NOTHING),
    ("the run could not tell the failure", {FAILURE_TOLD: False}, Duty.ALERT),
    ("the ledger knows nothing", {}, Duty.ALERT),
    ("the ledger knew nothing, and it was said", {ALERT: True}, Duty.NOTHING),
    ("an alert is half sent", {ALERT: False}, Duty.ALERT),
]


@pytest.mark.parametrize(("mails", "left"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE])
def test_what_is_left_to_do(mails: dict[str, bool], left: Duty) -> None:
    """P3, P4: each of the two mails until it is known to have its answer, and then no more."""
    assert duty(mails) is left


def test_doing_what_is_left_leaves_nothing() -> None:
    """P3: whatever the ledger says, one sweep that gets through is the last one that speaks."""
    done = {Duty.CORRECT: (CORRECTION, ALERT), Duty.ALERT: (ALERT,), Duty.NOTHING: ()}
    for rows in product((None, False, True), repeat=len(WATCHED)):
        mails = {
            purpose: row for purpose, row in zip(WATCHED, rows, strict=True) if row is not None
        }
        left = duty(mails)
        assert duty({**mails, **dict.fromkeys(done[left], True)}) is Duty.NOTHING


@given(environment=IDS, order=IDS, request=IDS, round_number=st.integers(1, 999))
def test_the_key_of_a_refund_says_whose_it_is(
    environment: str, order: str, request: str, round_number: int
) -> None:
    """What the run puts into the metadata is read back exactly, with the scope of its mails."""
    scope = request_scope(environment, order, request)
    read = read_refund_key(idempotency_key(scope, refund_purpose(round_number)))
    assert read == (environment, order, request)
    assert read.scope == scope


@given(st.one_of(st.text(), st.lists(IDS, max_size=6).map("/".join)))
def test_any_text_in_the_metadata_is_harmless(text: str) -> None:
    """P7: people can write anything there; what is read has ids that are safe in keys and URLs."""
    read = read_refund_key(text)
    assert read is None or text.startswith(read.scope)


OTHERS = [
    "",
    "local/refund-order-8890/req-1",
    "local/refund-order-8890/req-1/mail.refunded",
    "local/refund-order-8890/req-1/refund.r",
    "local/refund-order-8890/req-1/refund.r1/more",
    "local/order-8890/req-1/refund.r1",
    "local/refund-order-/req-1/refund.r1",
    "local/refund-order-../req-1/refund.r1",
    "local/refund-order-8890/../refund.r1",
    "../refund-order-8890/req-1/refund.r1",
    "local/refund-order-8890/req-1/refund.r1\n",
]


@pytest.mark.parametrize("key", OTHERS)
def test_what_is_no_key_of_ours_is_not_read(key: str) -> None:
    """A key that is nearly one of ours is none."""
    assert read_refund_key(key) is None


def test_the_sweeps_own_mails_meet_no_refunds_keys() -> None:
    """Their scope is that of no request, whatever the order or the request is called."""
    key = idempotency_key(sweep_scope("local", "2026-07-31"), refund_purpose(1))
    assert read_refund_key(key) is None
