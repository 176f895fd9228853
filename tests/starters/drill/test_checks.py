"""What the drill's checkers see: every broken promise, and nothing where all were kept."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from domain.models import Outcome
from domain.trail import Refusal
from starters.drill.checks import check
from starters.drill.evidence import Evidence, Mail, Sent
from starters.drill.plan import Fault
from tests.starters.drill import build
from tests.starters.drill.build import (
    CUSTOMER,
    GRACE,
    MARIA,
    OPERATIONS,
    RIGHT,
    SAM,
    SCOPE,
    TERMINATED,
    TOM,
    TOTAL,
    Cause,
    by_hand,
    history,
    mail,
    noted,
    plan,
    refund,
    refunded,
    retold,
    row,
    sent,
    step,
    task_failed,
    with_row,
    without_rows,
)

Change = Callable[[], Evidence]


@pytest.mark.parametrize("right", RIGHT, ids=lambda build: build.__name__)
def test_nothing_is_found_where_everything_went_right(right: Change) -> None:
    """A run that kept every promise has no finding, whatever its outcome."""
    assert check(right()) == []


def found(kind: str, words: str, given: Evidence) -> None:
    """The one thing that is wrong is found under its kind, and in words that say what it is."""
    findings = check(given)
    assert any(f.kind == kind and words in f.what for f in findings), findings


def with_mails(given: Evidence, change: Callable[[Mail], list[Mail]]) -> Evidence:
    """The same with each mail of the mailbox changed, doubled or taken away."""
    return replace(given, mails=[new for old in given.mails for new in change(old)])


def without_mail(given: Evidence, *purposes: str) -> Evidence:
    """The same without a mail, and without its row: nobody ever thought of it."""
    words = {build._word(mail(purpose)) for purpose in purposes}
    names = {f"mail.{purpose}" for purpose in purposes}
    left = with_mails(given, lambda m: [] if m.purpose in names else [m])
    return without_rows(left, lambda entry: entry.what == "mail_sent" and entry.detail in words)


def arrived(purpose: str, deliveries: int, **changes: Any) -> Evidence:
    """A refunded run of which one mail arrived so often."""
    name = f"mail.{purpose}"
    return with_mails(
        refunded(planned=plan(**changes)),
        lambda m: [replace(m, deliveries=deliveries)] if m.purpose == name else [m],
    )


def send_fault(what: str, purpose: str = "", **how: Any) -> Fault:
    """A fault at a mail of the run."""
    return Fault(operation="send", what=what, purpose=purpose, **how)


DUPLICATE: dict[str, Change] = {
    "2 refunds for proposal": lambda: refunded(
        refunds=[refund(21_000), refund(21_000, refund_id="re_2")]
    ),
    "2 refunds of ours": lambda: refunded(
        refunds=[refund(21_000), refund(21_000, refund_id="re_2", proposal_id="b" * 32)]
    ),
    "mail.refunded arrived 2 times, 1 are": lambda: arrived("refunded", 2),
    "mail.refunded arrived 3 times, 2 are": lambda: arrived(
        "refunded", 3, steps=[step("kill", "mail.refunded:done", who=["worker"])]
    ),
    "mail.refunded arrived 2 times": lambda: arrived(
        "refunded", 2, steps=[step("kill", "mail.refunded:before", who=["worker"])]
    ),
    "mail.refunded arrived": lambda: arrived(
        "refunded", 2, steps=[step("kill", "mail.refunded:done", who=["temporal"])]
    ),
    "mail.refunded arrived 2 times, 1": lambda: arrived(
        "refunded",
        2,
        steps=[step("kill", "company/send/mail.refunded:before", who=["company"])],
    ),
    "mail.refunded arrived ": lambda: arrived(
        "refunded", 2, faults=[send_fault("drop_after", "mail.under_review")]
    ),
    "mail.under_review arrived 2": lambda: arrived(
        "under_review", 2, steps=[step("kill", "mail.refunded:done", who=["worker"])]
    ),
    "under several Message-IDs": lambda: with_mails(
        refunded(planned=plan(faults=[send_fault("drop_after")])),
        lambda m: [m, replace(m, message_id="<other>")] if m.purpose == "mail.refunded" else [m],
    ),
    "mail.refunded was sent under 2 keys": lambda: with_mails(
        refunded(),
        lambda m: (
            [m, replace(m, key=m.key.replace("/r-1/", "/r-2/"))]
            if m.purpose == "mail.refunded"
            else [m]
        ),
    ),
    "the order service has 2 refunds": lambda: replace(
        refunded(), noted=[noted(), noted(key=f"{SCOPE}order.refunded.2")]
    ),
    "told two ends": lambda: refunded(
        mails=[*refunded().mails, mail("rejected")],
    ),
}


@pytest.mark.parametrize("words", DUPLICATE)
def test_what_happened_twice_is_found(words: str) -> None:
    """A second refund, or a mail that came again where nothing in the plan explains it."""
    found("duplicate", words, DUPLICATE[words]())


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": [step("kill", "mail.refunded:done", who=["worker"])]},
        {"steps": [step("stop", "mail.refunded:done", who=["worker"])]},
        {"steps": [step("kill", "company/send/mail.refunded:done", who=["company"])]},
        {"steps": [step("kill", "mail.notice.requester:before", who=["company"])]},
        {"steps": [step("kill", "order.refunded:before", who=["worker"])]},
        {"faults": [send_fault("drop_after", "mail.refunded")]},
        {"faults": [send_fault("hang_after")]},
        {"faults": [send_fault("delay", seconds=20)]},
    ],
)
def test_one_repeat_in_the_named_window_is_no_finding(changes: dict[str, Any]) -> None:
    """Who is cut off between a mail and its record sends the same message once more."""
    assert check(arrived("refunded", 2, **changes)) == []


def with_sent(*more: Sent) -> Evidence:
    """A refunded run with more messages that the server took, and none of them in a history."""
    given = refunded()
    return replace(given, sent=[*given.sent, *more])


def reset_without(message_id: str) -> Evidence:
    """A reset that lost a message on the way."""
    given = build.reset()
    kept = [message for message in given.sent if message.message_id != message_id]
    more = [task_failed(Cause.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW)]
    told = history(given.status, kept, more=more)
    return replace(given, histories=[given.histories[0], told])


LOST: dict[str, Change] = {
    "there is no run of it": lambda: replace(refunded(), histories=[]),
    "has no outcome": lambda: retold(refunded(), outcome=None),
    "was taken, and no history has it": lambda: with_sent(sent("m-7", by=TOM)),
    "1 messages without an id were taken": lambda: with_sent(Sent("", "garbage")),
    "no history says so": lambda: with_sent(Sent("", "cancel")),
    "did not come along with a reset": lambda: reset_without("m-1"),
    "1 messages came, 0 count": lambda: without_rows(
        refunded(), lambda entry: entry.what == "approved"
    ),
    "3 messages came, 1 count and 1": lambda: retold(
        build.with_garbage(), refused={"other_proposal": 1}
    ),
    "2 messages were unreadable": lambda: retold(build.with_garbage(), refused={"malformed": 2}),
    "message m-9 has no answer": lambda: without_rows(
        build.with_garbage(), lambda entry: entry.message_id == "m-9"
    ),
    "a cancel in Temporal has no answer": lambda: without_rows(
        build.cancelled(), lambda entry: entry.what == "withdrawn"
    ),
    "a rejection counted": lambda: retold(build.rejected(), outcome=Outcome.EXPIRED),
    "a withdrawal counted": lambda: retold(build.withdrawn(), outcome=Outcome.REFUNDED),
    "nobody has rejected it": lambda: retold(refunded(), outcome=Outcome.REJECTED),
    "nobody has withdrawn it": lambda: retold(refunded(), outcome=Outcome.WITHDRAWN),
    "and it expired": lambda: retold(refunded(), outcome=Outcome.EXPIRED),
}


@pytest.mark.parametrize("words", LOST)
def test_what_was_accepted_and_got_lost_is_found(words: str) -> None:
    """A request without an end, a message without an answer, a decision without an effect."""
    found("lost", words, LOST[words]())


SILENT: dict[str, Change] = {
    "refunded, and there is no mail.refunded": lambda: without_mail(refunded(), "refunded"),
    "no mail.declined": lambda: without_mail(build.declined(), "declined"),
    "declined, and there is no mail.notice.requester": lambda: without_mail(
        build.mistaken(), "notice.requester"
    ),
    "no mail.rejected": lambda: without_mail(build.rejected(), "rejected"),
    "rejected, and there is no mail.notice.requester": lambda: without_mail(
        build.rejected(), "notice.requester"
    ),
    "no mail.expired": lambda: without_mail(build.expired(), "expired"),
    "no mail.withdrawn": lambda: without_mail(build.withdrawn(), "withdrawn"),
    "no mail.notice.approvers": lambda: without_mail(build.withdrawn(), "notice.approvers"),
    "no mail.already_refunded": lambda: without_mail(build.already_refunded(), "already_refunded"),
    "no mail.refund_failed": lambda: without_mail(build.refund_failed(), "refund_failed"),
    "no mail.alert.refund_failed": lambda: without_mail(
        build.refund_failed(), "alert.refund_failed"
    ),
    "no mail.delayed": lambda: without_mail(build.needs_human(), "delayed"),
    "no mail.alert.status_unknown": lambda: without_mail(
        build.needs_human(), "alert.status_unknown"
    ),
    "failed later, and there is no mail.correction": lambda: without_mail(
        build.corrected(), "correction"
    ),
    "failed later, and there is no mail.alert": lambda: without_mail(
        build.corrected(), "alert.refund_failed_later"
    ),
    "1 mails 'refunded' arrived, 0 are": lambda: without_rows(
        refunded(), lambda entry: entry.detail == "refunded"
    ),
    "1 mails 'reminder' were sent by the trail": lambda: with_row(
        refunded(), row("mail_sent", "reminder")
    ),
    "a refund that has not succeeded": lambda: refunded(refunds=[refund(status="pending")]),
    "neither order service nor operations were told": lambda: replace(refunded(), noted=[]),
}


@pytest.mark.parametrize("words", SILENT)
def test_what_nobody_was_told_is_found(words: str) -> None:
    """Each end tells those whom the design names, and the trail knows of every message."""
    found("silent", words, SILENT[words]())


def test_a_mail_refused_for_good_is_excused_where_operations_hear_of_it() -> None:
    """A customer who cannot be reached is operations' to know, and silent where they do not."""
    faults = [send_fault("status", "mail.refunded", status=550)]
    base = without_mail(refunded(planned=plan(faults=faults)), "refunded")
    found("silent", "no mail.refunded", base)
    alert = mail("alert.undelivered.refunded", OPERATIONS)
    refused = row("mail_refused", "refunded no such mailbox")
    told = with_row(base, refused, row("mail_sent", "alert"))
    assert check(replace(told, mails=[*told.mails, alert])) == []


def test_an_order_service_that_is_not_told_is_excused_where_operations_hear_of_it() -> None:
    """Its no, or a day without it, is operations' to know; a yes without effect is nobody's."""
    alert = mail("alert.order_not_told", OPERATIONS)
    told = with_row(replace(refunded(), noted=[]), row("mail_sent", "alert"))
    assert check(replace(told, mails=[*told.mails, alert])) == []
    pretends = Fault(operation="orders.note_refund", what="ok_without_effect")
    assert check(replace(refunded(planned=plan(faults=[pretends])), noted=[])) == []


def test_a_mail_that_the_server_threw_away_is_excused_once() -> None:
    """A server's yes without a delivery is nobody's to see; it explains one mail, and no other."""
    faults = [send_fault("ok_without_effect", "mail.refunded")]
    given = refunded(planned=plan(faults=faults))
    gone = with_mails(given, lambda m: [] if m.purpose == "mail.refunded" else [m])
    assert check(gone) == []
    found(
        "silent",
        "'under_review'",
        with_mails(gone, lambda m: [] if m.purpose == "mail.under_review" else [m]),
    )


def approved_by(*people: str, **changes: Any) -> Evidence:
    """A refunded run in which these people approved."""
    messages = [sent(f"m-{n}", by=person) for n, person in enumerate(people)]
    rows = [row("approved", message_id=message.message_id) for message in messages]
    return refunded(messages=messages, rows=[row("proposed"), *rows], **changes)


def large(*people: str) -> Evidence:
    """$1,850.00, approved by these people."""
    given = build.by_two()
    return approved_by(
        *people,
        planned=given.plan,
        mails=given.mails,
        refunds=given.refunds,
        proposed=build.proposal(185_000, 0, 2),
    )


WRONG: dict[str, Change] = {
    "the order service was told of re_1, which has not": lambda: replace(
        build.refund_failed(), noted=[noted()]
    ),
    "the order service has 41999 of re_1": lambda: replace(refunded(), noted=[noted(41_999)]),
    "under 'local/refund-order-d-1/r-2/order.refunded'": lambda: replace(
        refunded(), noted=[noted(key=f"{SCOPE.replace('r-1', 'r-2')}order.refunded")]
    ),
    "41999 was refunded": lambda: refunded(refunds=[refund(41_999)]),
    "was refunded; the rules allow none": lambda: replace(refunded(), plan=plan(decision="nobody")),
    "is refunded": lambda: refunded(refunds=[refund(), by_hand(1)]),
    "on other payments": lambda: replace(refunded(), foreign_refunds=[refund(refund_id="re_9")]),
    "names order 'd-2'": lambda: refunded(refunds=[refund(order_id="d-2")]),
    "not this request's": lambda: refunded(
        refunds=[refund(key="local/refund-order-d-1/r-2/refund.r1")]
    ),
    "42000 EUR was captured": lambda: replace(refunded(), currency="EUR"),
    "by nobody": lambda: refunded(messages=[], rows=[row("proposed")]),
    f"by {TOM}": lambda: approved_by(
        TOM, refunds=[refund(60_000)], planned=plan(total_minor=60_000)
    ),
    "no authority for 42000: approvals": lambda: approved_by(SAM),
    "proposal aaaa": lambda: refunded(messages=[sent(proposal_id="b" * 32)]),
    "no authority for 185000": lambda: large(MARIA),
    f"by {GRACE}": lambda: large(GRACE),
    f"by {MARIA}, {TOM}": lambda: large(MARIA, TOM),
    f"by {GRACE}, {TOM}": lambda: large(GRACE, TOM),
    "no authority for 42000": lambda: replace(
        refunded(planned=plan(steps=[step("lose_right")])), voided=("m-1",)
    ),
    "no authority for 3500": lambda: with_row(
        replace(
            build.without_approval(),
            mails=[*build.without_approval().mails, mail("approval_request.r1", MARIA)],
        ),
        row("mail_sent", "approval_request"),
    ),
    "expired (verified)": lambda: retold(refunded(), outcome=Outcome.EXPIRED),
    "and the books have re_1": lambda: retold(refunded(), outcome=Outcome.DECLINED),
    "nobody else has refunded": lambda: replace(build.already_refunded(), refunds=[]),
    "refund_failed, and the books have re_1 of 42000 succeeded": lambda: replace(
        build.refund_failed(), refunds=[refund()]
    ),
    "refunded, and the books have no refund": lambda: replace(refunded(), refunds=[]),
    "the run names no refund": lambda: retold(refunded(), refund=None),
    "which the books do not have": lambda: replace(refunded(), refunds=[refund(refund_id="re_8")]),
    "the books 41000": lambda: replace(refunded(), refunds=[refund(41_000)]),
    "re_1 failed, the books canceled": lambda: replace(
        build.refund_failed(), refunds=[refund(status="canceled")]
    ),
    "does not name 42000": lambda: with_mails(
        refunded(), lambda m: [replace(m, text=m.text.replace("420", "402"))]
    ),
    "the customer was told mail.rejected": lambda: refunded(
        mails=[*refunded().mails[:2], mail("rejected")]
    ),
    "has the key": lambda: with_mails(
        refunded(), lambda m: [replace(m, key=m.key.replace("d-1", "d-2"))]
    ),
    "mail.refunded went to ben@customers.example": lambda: with_mails(
        refunded(),
        lambda m: [replace(m, to=("ben@customers.example",)) if CUSTOMER in m.to else m],
    ),
    f"mail.approval_request.r1 went to {CUSTOMER}": lambda: with_mails(
        refunded(), lambda m: [replace(m, to=(CUSTOMER,))]
    ),
    "mail.refunded went to nobody": lambda: with_mails(refunded(), lambda m: [replace(m, to=())]),
    f"mail.notice.requester went to {MARIA}": lambda: with_mails(
        build.rejected(), lambda m: [replace(m, to=(MARIA,)) if SAM in m.to else m]
    ),
    f"mail.alert.status_unknown went to {SAM}": lambda: with_mails(
        build.needs_human(), lambda m: [replace(m, to=(SAM,)) if OPERATIONS in m.to else m]
    ),
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_not_as_the_rules_say_is_found(words: str) -> None:
    """Amount, payee, order, authority, outcome and addressees, each held against the books."""
    found("wrong", words, WRONG[words]())


def test_a_step_without_effect_is_not_held_against_the_run() -> None:
    """A refund by hand that is not in the books, or a place that the run never came to."""
    assert check(refunded(planned=plan(steps=[step("hand_refund", minor=TOTAL)]))) == []
    given = refunded(planned=plan(steps=[step("dispute", "facts:before")]))
    found("wrong", "the rules allow declined", given)
    assert check(replace(given, missed=(0,))) == []


def test_what_other_plans_do_to_the_site_explains_no_more_than_it_can() -> None:
    """A worker that was ended for another plan explains one repeat of one mail."""
    once = replace(arrived("refunded", 2), cut_off_beside=1)
    assert check(once) == []
    found("duplicate", "arrived 2 times", with_mails(once, lambda m: [replace(m, deliveries=2)]))
    nobody = retold(build.by_two(), outcome=Outcome.NEEDS_HUMAN)
    found("wrong", "the rules allow refunded", nobody)
    lost = replace(nobody, right_lost_beside=True)
    assert not any("the rules allow" in finding.what for finding in check(lost))


def test_an_answer_that_was_lost_with_a_worker_beside_is_asked_for_again() -> None:
    """Found by seed 68068, run 87: the provider's yes without a refund went with the worker."""
    pretends = Fault(operation="refunds.create", what="ok_without_effect")
    asked_again = refunded(planned=plan(faults=[pretends]))
    found("wrong", "the rules allow needs_human", asked_again)
    assert check(replace(asked_again, cut_off_beside=1)) == []


STUCK: dict[str, Change] = {
    "no progress": lambda: replace(refunded(), driver_trouble="no progress in 60 seconds"),
    "a workflow task of run 1 failed": lambda: replace(
        refunded(),
        histories=[
            history(
                refunded().status,
                refunded().sent,
                more=[
                    task_failed(Cause.WORKFLOW_TASK_FAILED_CAUSE_WORKFLOW_WORKER_UNHANDLED_FAILURE)
                ],
            )
        ],
    ),
    "run 1 of 1 ended with WORKFLOW_EXECUTION_TERMINATED": lambda: replace(
        refunded(), histories=[history(None, refunded().sent, end=TERMINATED)]
    ),
    "run 1 of 2 ended with WORKFLOW_EXECUTION_TERMINATED": lambda: replace(
        build.started_again(), plan=plan()
    ),
    "the result of run 1 cannot be read": lambda: replace(
        refunded(), histories=[history(None, refunded().sent)]
    ),
    "is not what the run said": lambda: replace(
        refunded(),
        histories=[history(build.rejected().status, refunded().sent)],
    ),
}


@pytest.mark.parametrize("words", STUCK)
def test_what_came_to_no_end_is_found(words: str) -> None:
    """A run ends by completing with a result, and no workflow task of it fails on the way."""
    found("stuck", words, STUCK[words]())


@pytest.mark.parametrize(
    "cause",
    [
        Cause.WORKFLOW_TASK_FAILED_CAUSE_FORCE_CLOSE_COMMAND,
        Cause.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND,
    ],
)
def test_a_task_cut_off_from_outside_is_no_failure(cause: Cause.ValueType) -> None:
    """Somebody ended the run, or a message came at its very end: the next task looks at it."""
    given = refunded()
    more = [task_failed(cause)]
    assert check(replace(given, histories=[history(given.status, given.sent, more=more)])) == []


def test_answers_that_the_trail_has_dropped_are_counted_only() -> None:
    """After a flood, the rows of refused messages are gone and their number is exact."""
    flood = [sent(f"f-{n}", kind="foreign", proposal_id="b" * 32) for n in range(51)]
    given = refunded(
        messages=[sent(), *flood],
        rows=[row("proposed"), row("approved", message_id="m-1")],
        refused={Refusal.OTHER_PROPOSAL.value: 51},
    )
    assert check(given) == []
    found("lost", "52 messages came", retold(given, refused={"other_proposal": 50}))
