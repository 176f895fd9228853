"""Who is told what: at the start, while waiting, and at each end."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from domain.mail import TO_STAFF, MailFacts, MailOrder, MailPurpose
    from domain.models import Contact, Outcome
    from domain.names import workflow_id
    from domain.outcomes import MISTAKES_OF_THE_REQUESTER, Close, Reason

from workflows.state import RunState

_TO_CUSTOMER = {
    Outcome.REFUNDED: MailPurpose.REFUNDED,
    Outcome.DECLINED: MailPurpose.DECLINED,
    Outcome.REJECTED: MailPurpose.REJECTED,
    Outcome.EXPIRED: MailPurpose.EXPIRED,
    Outcome.WITHDRAWN: MailPurpose.WITHDRAWN,
    Outcome.ALREADY_REFUNDED: MailPurpose.ALREADY_REFUNDED,
    Outcome.REFUND_FAILED: MailPurpose.REFUND_FAILED,
    Outcome.NEEDS_HUMAN: MailPurpose.DELAYED,
}
# Whoever handed it in hears why a person said no: the customer will ask them.
_TELL_REQUESTER = (Outcome.REJECTED, Outcome.EXPIRED, Outcome.ALREADY_REFUNDED)
_TELL_APPROVERS = (Outcome.EXPIRED, Outcome.WITHDRAWN)
_ALERT_OPERATIONS = (Outcome.REFUND_FAILED, Outcome.NEEDS_HUMAN)


def under_review(state: RunState) -> list[MailOrder]:
    """The customer hears once that people look at it: who they are, by name, and nothing of why.

    Where nobody can decide, no such mail: the run ends, and its end is told.
    """
    deciders = tuple(contact.name for contact in _still_to_ask(state))
    if not deciders:
        return []
    facts = _facts(state).model_copy(update={"deciders": deciders})
    return _mail(state, MailPurpose.UNDER_REVIEW, "under_review", _customer(state), facts)


def under_review_unnamed(state: RunState) -> list[MailOrder]:
    """The same as release 1 sent it: before it was known who is asked."""
    return _mail(state, MailPurpose.UNDER_REVIEW, "under_review", _customer(state))


def approval_request(state: RunState) -> list[MailOrder]:
    """The approvers hear what is proposed, once per round."""
    return _to_approvers(state, MailPurpose.APPROVAL_REQUEST, "approval_request")


def approver_lost(state: RunState, time: int) -> list[MailOrder]:
    """The others hear that an approval does not count any more and that they are asked again."""
    return _to_approvers(state, MailPurpose.APPROVAL_REQUEST, f"approver_lost.{time}")


def reminder(state: RunState) -> list[MailOrder]:
    """The approvers hear again, once per round, that somebody waits for them."""
    return _to_approvers(state, MailPurpose.REMINDER, "reminder")


def escalation(state: RunState) -> list[MailOrder]:
    """The next level hears of it too: the finance directors."""
    if state.case is None or state.proposal is None:
        return []
    directors = state.case.next_level(state.proposal)
    return _to_approvers(state, MailPurpose.ESCALATION, "escalation", directors)


def alert(state: RunState, what: str, explanation: str) -> list[MailOrder]:
    """Operations hears that something needs eyes, while the run goes on."""
    facts = _facts(state).model_copy(update={"reason": what, "explanation": explanation})
    return _mail(state, MailPurpose.ALERT, f"alert.{what}", _operations(state), facts)


def end(state: RunState, close: Close) -> list[MailOrder]:
    """Everybody who must hear of this end, each in one mail."""
    facts = _facts(state).model_copy(
        update={
            "outcome": close.outcome.value,
            "reason": close.reason.value,
            "explanation": close.explanation,
            "refund": close.refund or state.refund,
        }
    )
    mails: list[MailOrder] = []
    if close.reason in MISTAKES_OF_THE_REQUESTER:
        return _mail(state, MailPurpose.STAFF_NOTICE, "notice.requester", _requester(state), facts)
    if close.reason is not Reason.REQUEST_NOT_AUTHENTIC:
        # A request that nobody vouches for must not make us write to a customer.
        purpose = _TO_CUSTOMER[close.outcome]
        mails += _mail(state, purpose, purpose.value, _customer(state), facts)
    if close.outcome in _TELL_REQUESTER:
        to = _requester(state)
        mails += _mail(state, MailPurpose.STAFF_NOTICE, "notice.requester", to, facts)
    if close.outcome in _TELL_APPROVERS and _were_asked(state):
        to = _approvers(state)
        mails += _mail(state, MailPurpose.STAFF_NOTICE, "notice.approvers", to, facts)
    if close.outcome in _ALERT_OPERATIONS or not mails:
        # Nobody else could be told: no end is silent (promise P4).
        to = _operations(state)
        # The reason is part of the key: a run that was started again or reset may end otherwise.
        mails += _mail(state, MailPurpose.ALERT, f"alert.{close.reason.value}", to, facts)
    return mails


def _to_approvers(
    state: RunState, purpose: MailPurpose, name: str, more: tuple[Contact, ...] = ()
) -> list[MailOrder]:
    if state.case is None or state.proposal is None:
        return []
    given = [approval.person for approval in state.approvals]
    others = [person for person in more if person not in given]
    to = tuple(dict.fromkeys((*_still_to_ask(state), *others)))
    return _mail(state, purpose, f"{name}.r{state.proposal.round}", to)


def _mail(
    state: RunState,
    purpose: MailPurpose,
    name: str,
    to: tuple[Contact, ...],
    facts: MailFacts | None = None,
) -> list[MailOrder]:
    if not to and purpose is not MailPurpose.ALERT:
        return []
    resumed = state.request.resumes
    if resumed is not None and resumed.retry and purpose in TO_STAFF:
        # Staff hear of each retry; a customer hears each thing once.
        name = f"{name}.retry{resumed.retry}"
    return [
        MailOrder(
            environment=state.request.environment,
            key=state.key(f"mail.{name}"),
            purpose=purpose,
            to=to,
            facts=facts or _facts(state),
        )
    ]


def _customer(state: RunState) -> tuple[Contact, ...]:
    order = state.case.order if state.case is not None else None
    if order is None:
        return ()
    return (Contact(name=order.customer.name, address=order.customer.email),)


def _requester(state: RunState) -> tuple[Contact, ...]:
    requester = state.case.requester if state.case is not None else None
    return (requester,) if requester is not None else ()


def _approvers(state: RunState) -> tuple[Contact, ...]:
    if state.case is None or state.proposal is None:
        return ()
    return state.case.to_ask(state.proposal)


def _still_to_ask(state: RunState) -> tuple[Contact, ...]:
    """Whose approval would help beside those that count."""
    if state.case is None or state.proposal is None:
        return ()
    return state.case.to_ask(state.proposal, tuple(state.approvals))


def _were_asked(state: RunState) -> bool:
    return state.proposal is not None and state.proposal.approvals_needed > 0


def _operations(state: RunState) -> tuple[Contact, ...]:
    """Whom the policy names; where it could not be read, the adapter knows whom to write to."""
    if state.case is None:
        return ()
    return (Contact(name="Refund operations", address=state.case.policy.operations),)


def _facts(state: RunState) -> MailFacts:
    order = state.case.order if state.case is not None else None
    return MailFacts(
        order_id=state.request.order_id,
        workflow_id=workflow_id(state.request.order_id),
        request_id=state.request.request_id,
        customer=order.customer.name if order is not None else "",
        locale=order.customer.locale if order is not None else "en_US",
        amount=state.amount,
        proposal=state.proposal,
        approved_by=tuple(approval.person.name for approval in state.approvals),
        waits_for=state.missing,
        deadline=state.deadline,
        requester=state.request.requester,
        letter=state.request.message[:2_000],
        summary=state.assessment.summary if state.assessment is not None else "",
        refund=state.refund,
        changed=state.changed,
    )
