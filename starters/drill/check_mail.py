"""Mail: everybody who must hear hears it, once, and nothing untrue (promises P3 and P4)."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from domain.models import Outcome
from domain.moments import Moment
from domain.outcomes import MISTAKES_OF_THE_REQUESTER, Reason
from domain.trail import RunStatus
from starters.drill.evidence import Finding, Mail
from starters.drill.look import (
    BY_THE_SWEEP,
    FINAL,
    TO_CUSTOMER,
    Story,
    kind_of,
    mails_ordered,
    ordered_under,
)
from starters.drill.place import company_place
from starters.drill.plan import Fault, Process, Step
from starters.drill.rules import DECIDERS, OPERATIONS, REQUESTER
from starters.drill.timing import worker_place
from workers.release import RELEASE

# Who hears of an end beside the customer; with `mail.approval_request` in the mailbox, approvers.
_ALSO_TOLD = {
    Outcome.REJECTED: ("mail.notice.requester",),
    Outcome.EXPIRED: ("mail.notice.requester", "mail.notice.approvers"),
    Outcome.WITHDRAWN: ("mail.notice.approvers",),
    Outcome.ALREADY_REFUNDED: ("mail.notice.requester",),
}
# Mails that go out together: who is killed at one of them may be in the middle of another.
_TOGETHER = ("mail.under_review", "mail.approval_request")
_WHILE_WAITING = (*_TOGETHER, "mail.approver_lost", "mail.reminder", "mail.escalation")
# Longer than a sender waits for a mail server's answer; the server delivers all the same.
_SECONDS_OF_PATIENCE = 10
_HOURS_OF_PATIENCE = 72
_ENDING = ("kill", "stop", "deploy")


def repeated(story: Story) -> Iterator[Finding]:
    """More than one mail of a key, but for the one named window of SMTP."""
    by_key: dict[str, list[Mail]] = defaultdict(list)
    for mail in story.evidence.mails:
        by_key[mail.key].append(mail)
    beside = story.evidence.cut_off_beside
    for mails in by_key.values():
        purpose = mails[0].purpose
        count = sum(mail.deliveries for mail in mails)
        allowed = 1 + _openings(story, purpose)
        if allowed < count <= allowed + beside:
            # Whoever was ended for another plan may have been in the middle of this mail.
            beside -= count - allowed
            continue
        if count > allowed:
            yield Finding("duplicate", f"{purpose} arrived {count} times, {allowed} are explained")
        if len({mail.message_id for mail in mails}) > 1:
            yield Finding("duplicate", f"{purpose} arrived under several Message-IDs")
    for purpose, keys in Counter(key.rpartition("/")[2] for key in by_key).items():
        if keys > 1:
            yield Finding("duplicate", f"{purpose} was sent under {keys} keys")
    final = sorted({mail.purpose for mail in story.evidence.mails} & set(FINAL))
    if len(final) > 1:
        yield Finding("duplicate", f"the customer was told two ends: {', '.join(final)}")


def unheard(story: Story) -> Iterator[Finding]:
    """Somebody who had to hear of the end and did not."""
    status = story.evidence.status
    if status is None or status.outcome is None:
        return
    excuses = _Excuses(story)
    for purpose in _required(story, status, status.outcome):
        if not story.mails(purpose) and not excuses.cover(purpose):
            yield Finding("silent", f"{status.outcome.value}, and there is no {purpose}")
    if story.plan.fails_late and any(refund.status == "failed" for refund in story.ours):
        for purpose in BY_THE_SWEEP:
            if not story.mails(purpose) and not excuses.cover(purpose):
                yield Finding("silent", f"the refund failed later, and there is no {purpose}")


def untold(story: Story) -> Iterator[Finding]:
    """A message without a row in the trail, or a row without a message."""
    status = story.evidence.status
    if status is None or not story.evidence.histories:
        return
    earlier: set[str] = set().union(*map(mails_ordered, story.evidence.histories[:-1]))
    written, sent = _rows(status)
    keys: dict[str, set[str]] = defaultdict(set)
    for mail in story.evidence.mails:
        if mail.purpose not in BY_THE_SWEEP:
            keys[kind_of(mail.purpose)].add(mail.key)
    excuses = _Excuses(story)
    for kind in sorted(keys.keys() | sent.keys()):
        of_this_run = keys[kind] - earlier
        if len(of_this_run) > written[kind]:
            words = f"{len(of_this_run)} mails {kind!r} arrived, {written[kind]} are in the trail"
            yield Finding("silent", words)
        missing = sent[kind] - len(keys[kind])
        if missing > 0 and not all(excuses.swallow(kind) for _ in range(missing)):
            words = f"{sent[kind]} mails {kind!r} were sent by the trail, {len(keys[kind])} arrived"
            yield Finding("silent", words)


def untrue(story: Story) -> Iterator[Finding]:
    """A mail that says what is not so, or says it to somebody else."""
    plan = story.plan
    status = story.evidence.status
    good = ("succeeded", "failed") if plan.fails_late else ("succeeded",)
    for mail in story.mails("mail.refunded"):
        made = [refund for refund in story.ours if refund.status in good]
        if not made:
            yield Finding("silent", "the customer was told of a refund that has not succeeded")
        elif not _names_amount(mail, made[0].amount_minor):
            yield Finding("wrong", f"mail.refunded does not name {made[0].amount_minor}")
    for mail in story.mails("mail.under_review"):
        if _must_name_deciders(story) and not any(person.name in mail.text for person in DECIDERS):
            yield Finding("wrong", "mail.under_review does not say who will decide")
    outcome = status.outcome if status is not None else None
    for purpose in FINAL:
        if outcome is not None and story.mails(purpose) and purpose != _to_customer(outcome):
            yield Finding("wrong", f"the customer was told {purpose}, and it is {outcome.value}")
    scope = f"/refund-order-{plan.order_id}/{story.evidence.request_id}/"
    for mail in story.evidence.mails:
        if scope not in mail.key or mail.key.rpartition("/")[2] != mail.purpose:
            yield Finding("wrong", f"{mail.purpose} has the key {mail.key!r}")
        to = set(mail.to)
        if not to or not to <= _may_get(story, mail):
            who = ", ".join(sorted(to)) or "nobody"
            yield Finding("wrong", f"{mail.purpose} went to {who}")


class _Excuses:
    """What the plan's mail faults explain: each explains as many mails as it hits."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._left = [
            (fault, _times(fault)) for fault in story.plan.faults if fault.operation == "send"
        ]

    def cover(self, purpose: str) -> bool:
        """Whether it is explained that a mail is missing: swallowed, or operations know."""
        if self._take(_loses, purpose):
            return True
        if purpose.startswith("mail.alert"):
            return self._take(_stops, purpose)
        alert = f"mail.alert.undelivered.{purpose.removeprefix('mail.')}"
        # Where operations could not be told either, another of the plan's faults has hit that mail.
        told = bool(self._story.mails(alert)) or self._take(_stops, alert)
        return told and (_days_pass(self._story) or self._take(_stops, purpose))

    def swallow(self, kind: str) -> bool:
        """Whether a mail of a kind was taken by the server and thrown away."""
        return self._take(_loses, f"mail.{kind}")

    def _take(self, explains: Callable[[Fault], bool], purpose: str) -> bool:
        for n, (fault, left) in enumerate(self._left):
            about = fault.purpose
            hits = purpose.startswith(about) or purpose == f"mail.{kind_of(about)}"
            if left and hits and explains(fault):
                self._left[n] = (fault, left - 1)
                return True
        return False


def _days_pass(story: Story) -> bool:
    """Whether so much time passes that a mail which cannot be delivered is given up."""
    hours = sum(step.hours for step in story.plan.steps if step.do == "pass_time")
    return hours >= _HOURS_OF_PATIENCE


def _loses(fault: Fault) -> bool:
    return fault.what == "ok_without_effect"


def _stops(fault: Fault) -> bool:
    """Whether a mail may never be delivered: refused for good, or no answer for days."""
    refused = fault.what == "status" and (fault.status or 0) >= 500
    return refused or (fault.call == "every" and fault.times is None and fault.what != "delay")


def _times(fault: Fault) -> int:
    many = 1_000
    return (many if fault.call == "every" else 1) if fault.times is None else fault.times


def _openings(story: Story, purpose: str) -> int:
    """How often this mail may have come again: each is a cut between its sending and its record."""
    steps = sum(_opens(step, purpose) for step in story.plan.steps)
    return steps + sum(
        _times(fault)
        for fault in story.plan.faults
        if fault.operation == "send"
        and purpose.startswith(fault.purpose)
        and (
            fault.what in ("drop_after", "hang_after")
            or (fault.seconds or 0) >= _SECONDS_OF_PATIENCE
        )
    )


def _opens(step: Step, purpose: str) -> bool:
    effect, _, moment = worker_place(step.at).partition(":")
    if step.do == "cut":
        # Whoever is cut off may send late, and whoever did not hear the answer sends again.
        return effect == purpose or _are_beside(effect, purpose)
    in_the_company = company_place(step.at) is not None
    if effect == purpose and in_the_company:
        # The company has the mail and says nothing: whatever is done then, it comes again.
        return moment == Moment.DONE
    if step.do not in _ENDING or not {Process.WORKER, Process.COMPANY} & set(step.who):
        return False
    if effect == purpose:
        # The worker is held at this very mail: only here it is out and not written down.
        return moment == Moment.DONE and Process.WORKER in step.who
    return _are_beside(effect, purpose)


def _are_beside(effect: str, purpose: str) -> bool:
    """Whether a mail may be on its way while another one is, or the order service is told."""
    return effect.startswith(("mail.", "order.")) and _group(effect) == _group(purpose)


def _group(purpose: str) -> str:
    if purpose.startswith(_TOGETHER):
        return "at the start of a round"
    return purpose if purpose.startswith(_WHILE_WAITING) else "at the end"


def _required(story: Story, status: RunStatus, outcome: Outcome) -> Iterator[str]:
    if status.reason in MISTAKES_OF_THE_REQUESTER:
        yield "mail.notice.requester"
        return
    nobody_known = status.reason == Reason.FACTS_UNAVAILABLE and status.proposal is None
    if status.reason != Reason.REQUEST_NOT_AUTHENTIC and not nobody_known:
        yield _to_customer(outcome)
    asked = any(m.purpose.startswith("mail.approval_request.") for m in story.evidence.mails)
    nobody_left = any(step.do == "lose_right" for step in story.plan.steps)
    for purpose in _ALSO_TOLD.get(outcome, ()):
        if purpose != "mail.notice.approvers" or (asked and not nobody_left):
            yield purpose
    if outcome in (Outcome.REFUND_FAILED, Outcome.NEEDS_HUMAN):
        yield f"mail.alert.{status.reason}"


def _to_customer(outcome: Outcome) -> str:
    return "mail.delayed" if outcome is Outcome.NEEDS_HUMAN else f"mail.{outcome.value}"


def _rows(status: RunStatus) -> tuple[Counter[str], Counter[str]]:
    """How many mails of a kind the trail has a row of, and how many it says were sent."""
    written: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    for row in status.trail:
        if row.what.startswith("mail_"):
            kind = re.match(r"\w*", row.detail)
            word = kind[0] if kind is not None else ""
            written[word] += 1
            sent[word] += row.what in ("mail_sent", "mail_already_sent")
    return written, sent


def _must_name_deciders(story: Story) -> bool:
    """Whether all runs of the order had this code where they ordered it; release 1 named nobody."""
    histories = story.evidence.histories
    builds = {ordered_under(history, "mail.under_review") for history in histories} - {""}
    return builds == {RELEASE}


def _may_get(story: Story, mail: Mail) -> set[str]:
    if mail.purpose in TO_CUSTOMER:
        return {story.customer}
    if mail.purpose.startswith("mail.alert"):
        return {OPERATIONS}
    if mail.purpose.startswith("mail.notice.requester"):
        return {REQUESTER}
    return {person.address for person in DECIDERS}


def _names_amount(mail: Mail, minor: int) -> bool:
    """Whether the amount's digits stand in the text, whatever stands between them."""
    return str(minor) in re.sub(r"[^0-9]", "", mail.text)
