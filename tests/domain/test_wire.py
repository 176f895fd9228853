"""What goes through Temporal comes out the same, and survives a sender that knows more."""

import inspect
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, get_type_hints

import pytest
from pydantic import TypeAdapter, ValidationError
from temporalio.contrib.pydantic import PydanticPayloadConverter

from activities import interfaces
from activities.interfaces import (
    Addressees,
    AddresseesQuery,
    AttemptState,
    CaseQuery,
    OrderNotice,
    OrderReceipt,
    RefundAttempt,
    RefundOrder,
    RefundQuery,
    RefundReading,
    StatementCheck,
    StatementVerdict,
    SweepPage,
    SweepQuery,
    ToolResults,
    ToolsQuery,
)
from domain.agent import ModelAnswer, ModelRequest, ToolCall, ToolResult, Turn
from domain.approvals import Standing
from domain.instants import Instant
from domain.mail import MailFacts, MailOrder, MailPurpose, MailReceipt, MailState
from domain.models import Approver, Contact, Frozen, Outcome, PublicKey, Stage, TokenUsage
from domain.names import ORDER_PURPOSE, idempotency_key
from domain.statements import (
    DecisionClaims,
    RequestClaims,
    SignedStatement,
    StatementKind,
    Verdict,
    WithdrawalClaims,
)
from domain.sweep import Duty, FailedRefund, SweepOrder, SweepOutcome, SweepReport
from domain.trail import Entry, Refusal, RunStatus
from tests.domain.build import (
    CUSTOMER,
    NOW,
    REQUESTER,
    SCOPE,
    assessment,
    case,
    order,
    person,
    proposal,
    refund,
    request,
    usd,
)

MARIA = Contact(name="Maria Silva", address="maria.silva@northwind.example")
APPROVER = Approver(name=MARIA.name, address=MARIA.address, limits=(usd(100_000),))
CALL = ToolCall(call_id="c-1", tool="look_up_order", arguments='{"order_id": "8891"}')
RESULT = ToolResult(call_id="c-1", content="…")
CLAIMS: dict[str, Any] = {
    "iss": REQUESTER,
    "iat": NOW,
    "jti": "j-1",
    "env": "local",
    "sub": "refund-order-8890",
}
KEY = PublicKey(
    kid="maria.silva.1", algorithm="Ed25519", public="A" * 43, valid_from=NOW, signs_for=("x@y",)
)
MADE = refund("re_1", 42_000, "a word of next year", key=idempotency_key(SCOPE, "refund.r1"))
QUESTION = ToolsQuery(environment="local", order_id="8890", calls=(CALL,))

SAMPLES: list[Frozen] = [
    request(amount="420.00"),
    order(items=[{"name": "lamp", "quantity": 1}]),
    person(keys=(KEY,)),
    case(
        MADE,
        requester=MARIA,
        approvers=(APPROVER,),
        directors=(APPROVER,),
        requester_refusal=Refusal.NOT_ACTIVE,
        told=(Outcome.REJECTED,),
        standings=(Standing(refusal=Refusal.OVER_LIMIT, director=True),),
    ),
    CaseQuery(environment="local", request=request(), proposal=proposal(), approvals=("a.b.c",)),
    ModelRequest(
        environment="local",
        key="k",
        order_id="8890",
        letter="Ünïcode \u2028 \x00 <b>",
        turns=(Turn(calls=(CALL,), results=(RESULT,), problem="p"),),
    ),
    ModelAnswer(
        model="m",
        calls=(CALL,),
        assessment=assessment(cited_clauses=("§1",)),
        usage=TokenUsage(requests=1, input_tokens=2, output_tokens=3),
    ),
    QUESTION,
    ToolResults(results=(RESULT,)),
    RESULT,
    StatementCheck(
        environment="local",
        token="a.b.c",
        kind=StatementKind.DECISION,
        proposal=proposal(),
        requester=REQUESTER,
        customer=CUSTOMER,
        received_at=NOW,
    ),
    StatementVerdict(refusal=None, person=MARIA, director=True, checked="key m.1"),
    RefundOrder(
        environment="local",
        key=idempotency_key(SCOPE, "refund.r1"),
        scope=SCOPE,
        known_refunds=("re_1",),
        payment="pi_8890",
        amount=usd(42_000),
        order_id="8890",
        proposal_id=proposal().proposal_id,
        checked_at=NOW + timedelta(microseconds=1),
    ),
    RefundAttempt(state=AttemptState.MADE, refund=MADE, code="c", detail="d"),
    RefundQuery(environment="local", refund_id="re_1"),
    RefundReading(refund=MADE),
    OrderNotice(
        environment="local", key=idempotency_key(SCOPE, ORDER_PURPOSE), order_id="8890", refund=MADE
    ),
    OrderReceipt(known_before=True),
    SweepQuery(environment="local", since=NOW, after="re_1"),
    SweepPage(
        failed=(
            FailedRefund(
                refund=MADE,
                failure_reason="unknown",
                order_id="8890",
                request_id="r-1",
                duty=Duty.CORRECT,
            ),
        ),
        looked_at=1,
    ),
    AddresseesQuery(environment="local", order_id="8890"),
    Addressees(customer=order().customer, operations=MARIA),
    SweepOrder(environment="local"),
    SweepReport(outcome=SweepOutcome.UNREADABLE, since=NOW, looked_at=1, found=("re_1",)),
    MailOrder(
        environment="local",
        key="k",
        purpose=MailPurpose.REFUNDED,
        to=(MARIA,),
        facts=MailFacts(
            order_id="8890",
            workflow_id="refund-order-8890",
            amount=usd(1),
            proposal=proposal(),
            deadline=NOW,
            refund=MADE,
        ),
    ),
    MailReceipt(state=MailState.ALREADY_SENT, message_id="<1@northwind.example>"),
    RunStatus(),
    RunStatus(
        order_id="8890",
        stage=Stage.CLOSED,
        outcome=Outcome.REFUNDED,
        proposal=proposal(),
        assessment=assessment(),
        deadline=NOW,
        now=NOW,
        refund=MADE,
        asked=usd(1),
        trail=(Entry(at=NOW, what="refused", refusal=Refusal.MALFORMED),),
        refused={"malformed": 1, "a word of next year": 2},
    ),
    SignedStatement(token="a.b.c"),
    RequestClaims(**CLAIMS, digest="d"),
    DecisionClaims(**CLAIMS, proposal="p", verdict=Verdict.APPROVE),
    WithdrawalClaims(**CLAIMS, request="r-1"),
]
# Maps from a word to a number: a new word is data there, not a new field.
MAPS = ("auto_approve_up_to", "one_manager_up_to", "refused")


def over_the_wire(value: Frozen) -> object:
    """The value as the other side of Temporal gets it."""
    converter = PydanticPayloadConverter()
    return converter.from_payloads(converter.to_payloads([value]), [type(value)])[0]


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_what_is_sent_arrives(value: Frozen) -> None:
    """Tuples, enums, instants and defaults are the same after Temporal's converter."""
    assert over_the_wire(value) == value
    assert type(over_the_wire(value)) is type(value)


def test_everything_that_activities_take_or_give_is_tried() -> None:
    """A new activity or a new model on the wire fails here until it has its sample."""
    methods = [
        method
        for _, group in inspect.getmembers(interfaces, inspect.isclass)
        for _, method in inspect.getmembers(group, inspect.isfunction)
        if getattr(method, "__isabstractmethod__", False)
    ]
    used = {hint for method in methods for hint in get_type_hints(method).values()}
    assert len(methods) >= 7
    assert used - {type(sample) for sample in SAMPLES} == set()


def grown(value: object, name: str = "") -> object:
    """The same JSON from a sender of next year, with a new field in every object."""
    if isinstance(value, dict):
        more = {key: grown(inner, key) for key, inner in value.items()}
        return more if name in MAPS else more | {"field_of_next_year": {"a": [1]}}
    return [grown(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_a_field_of_next_year_is_survived(value: Frozen) -> None:
    """A service or a worker that knows more does not break a run that waits (pydantic-ai#6633)."""
    sent = json.dumps(grown(json.loads(value.model_dump_json())))
    assert type(value).model_validate_json(sent) == value


@pytest.mark.parametrize("value", SAMPLES, ids=lambda value: type(value).__name__)
def test_models_cannot_be_changed(value: Frozen) -> None:
    """What was read stays as it was read."""
    for field in type(value).model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(value, field, getattr(value, field))


@pytest.mark.parametrize(
    "text", ["2026-11-29T18:00:00Z", "2026-11-29T20:00:00+02:00", "2026-11-29T12:30:00-05:30"]
)
def test_instants_are_in_utc_however_they_were_written(text: str) -> None:
    """A mail or a page that prints an instant prints the time that it says it does."""
    delivered = order(delivered_at=text).delivered_at
    assert delivered is not None
    assert delivered == NOW
    assert f"{delivered:%H:%M}" == "18:00"
    sent = order(delivered_at=NOW.astimezone(timezone(timedelta(hours=-3)))).model_dump_json()
    assert '"2026-11-29T18:00:00Z"' in sent


@pytest.mark.parametrize(
    "instant",
    [
        "2026-11-29T18:00:00",
        NOW.replace(tzinfo=None),
        "0001-01-01T00:00:00+14:00",
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ],
    ids=str,
)
def test_an_instant_that_cannot_be_compared_is_refused(instant: object) -> None:
    """Without a zone, or outside of the calendar once in UTC: refused when read, not later."""
    with pytest.raises(ValidationError):
        TypeAdapter(Instant).validate_python(instant)


FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize("instant", [FIRST, LAST], ids=str)
def test_the_ends_of_the_calendar_are_instants(instant: datetime) -> None:
    """They compare with any other instant and go over the wire."""
    adapter = TypeAdapter[datetime](Instant)
    assert adapter.validate_json(adapter.dump_json(instant)) == instant
    assert FIRST <= instant <= LAST
    assert (instant < NOW) == (instant == FIRST)
