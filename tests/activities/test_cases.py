"""The facts of a case: everything as it is now, and the request held to its signature (P2)."""

from typing import Any

import httpx
import pytest

from activities.cases import Cases
from activities.interfaces import CaseQuery
from domain.case import Case, Ours
from domain.errors import OutsideError, Unreachable
from domain.names import request_scope
from domain.request import RefundRequest
from domain.trail import Refusal
from tests.activities.support import REQUEST, MovableClock, proposal, refund_order, usd
from tests.northwind.support import set_faults
from tests.signing import GRACE, MARIA, SAM, TOM, VICTOR, Signer
from workers.wiring import Activities


@pytest.fixture
def cases(activities: Activities) -> Cases:
    """The adapter."""
    return activities.cases


@pytest.fixture
def request_of(signer: Signer) -> Any:
    """Makes requests, signed by their requester unless a statement is given."""

    def make(order: str = "8890", statement: str = "", **changes: Any) -> RefundRequest:
        fields = {
            "environment": "local",
            "order_id": order,
            "request_id": REQUEST,
            "message": "It came broken.",
            "requester": SAM,
            "statement": statement,
            **changes,
        }
        request = RefundRequest.model_validate(fields)
        signed = statement or signer.request(request)
        return request.model_copy(update={"statement": signed})

    return make


async def read(cases: Cases, request: RefundRequest, **more: Any) -> Case:
    """Read the case of a request."""
    return await cases.read_case(CaseQuery(environment="local", request=request, **more))


async def control(http: httpx.AsyncClient, path: str, **body: Any) -> None:
    """Be the outside world."""
    answer = await http.post(f"/control/{path}", json=body)
    assert answer.is_success, answer.text


async def test_a_case_holds_all_that_is_to_be_known(
    cases: Cases, request_of: Any, clock: MovableClock
) -> None:
    """Order, payment with its refunds, policy, requester, and whom to ask."""
    before = clock()
    case = await read(cases, request_of("8896"))
    assert before <= case.read_at <= clock()
    assert case.order is not None
    assert case.payment is not None
    assert (case.order.id, case.order.total) == ("8896", usd(25000))
    assert (case.payment.left, len(case.payment.refunds)) == (usd(13000), 1)
    assert case.policy.return_window_days == 30
    assert case.requester is not None
    assert (case.requester.address, case.requester_refusal) == (SAM, None)
    assert [contact.address for contact in case.approvers] == [MARIA, TOM]
    assert [contact.address for contact in case.directors] == [GRACE]


async def test_nobody_is_asked_about_a_refund_of_their_own(
    cases: Cases, request_of: Any, http: httpx.AsyncClient
) -> None:
    """R12: neither the requester, however spelled, nor the customer is an approver."""
    case = await read(cases, request_of(requester=MARIA))
    assert [contact.address for contact in case.approvers] == [TOM]
    customer = {"name": "Tom", "email": "Tom.Becker+shop@northwind.example", "locale": "en_US"}
    await control(http, "orders/8890", customer=customer)
    case = await read(cases, request_of(requester=MARIA))
    assert case.approvers == ()


async def test_an_order_that_does_not_exist_has_no_payment(cases: Cases, request_of: Any) -> None:
    """No such order is a fact of the case."""
    case = await read(cases, request_of("1234"))
    assert (case.order, case.payment) == (None, None)


async def test_an_order_is_shown_as_the_service_spells_it(cases: Cases, request_of: Any) -> None:
    """`08890` is found as 8890, and the run sees the difference."""
    case = await read(cases, request_of("08890"))
    assert case.order is not None
    assert case.order.id == "8890"


CHANGED: list[Any] = [
    pytest.param({"message": "Pay me more."}, Refusal.OTHER_REQUEST, id="letter"),
    pytest.param({"amount": "1.00"}, Refusal.OTHER_REQUEST, id="amount"),
    pytest.param({"request_id": "req-2"}, Refusal.OTHER_REQUEST, id="request id"),
    pytest.param({"order_id": "8891"}, Refusal.OTHER_RUN, id="order"),
    pytest.param({"environment": "staging"}, Refusal.OTHER_ENVIRONMENT, id="environment"),
    pytest.param({"requester": MARIA}, Refusal.OTHER_REQUEST, id="requester"),
    pytest.param({"requester": "no@northwind.example"}, Refusal.UNKNOWN_PERSON, id="nobody"),
    pytest.param({"statement": "x.y.z"}, Refusal.MALFORMED, id="no statement"),
]


@pytest.mark.parametrize(("changes", "expected"), CHANGED)
async def test_a_request_that_was_not_signed_like_this_is_refused(
    cases: Cases, request_of: Any, changes: dict[str, str], expected: Refusal
) -> None:
    """Whoever can start a run cannot speak for a member of staff."""
    case = await read(cases, request_of().model_copy(update=changes))
    assert case.requester_refusal is expected


async def test_a_request_by_one_who_left_is_refused(cases: Cases, request_of: Any) -> None:
    """Victor still has his key file."""
    case = await read(cases, request_of(requester=VICTOR))
    assert case.requester_refusal is Refusal.KEY_NOT_VALID


async def test_a_key_that_ran_out_ends_no_request_that_was_taken_up(
    cases: Cases, request_of: Any, http: httpx.AsyncClient, clock: MovableClock
) -> None:
    """On arrival the key must be valid; on the re-check a week later it is enough that it was."""
    request = request_of()
    [key] = (await http.get(f"/staff/{SAM}")).json()["keys"]
    clock.advance(hours=2)
    until = {"valid_until": clock().isoformat()}
    await control(http, f"staff/{SAM}", keys=[key | until])
    clock.advance(hours=2)
    arrived = await read(cases, request)
    assert arrived.requester_refusal is Refusal.KEY_NOT_VALID
    rechecked = await read(cases, request, proposal=proposal())
    assert rechecked.requester_refusal is None


async def test_an_approval_is_held_to_the_rights_of_now(
    cases: Cases, request_of: Any, signer: Signer, http: httpx.AsyncClient
) -> None:
    """R13: an approver whose limit was cut, who left, or whose key is gone approves no more."""
    approval = signer.decision(proposal()).token

    async def refusals() -> tuple[Refusal, ...]:
        case = await read(cases, request_of(), proposal=proposal(), approvals=(approval,))
        return tuple(now.refusal for now in case.standings if now.refusal is not None)

    maria = (await http.get(f"/staff/{MARIA}")).json()
    assert await refusals() == ()
    await control(http, f"staff/{MARIA}", limits=[{"amount_minor": 41999, "currency": "USD"}])
    assert await refusals() == (Refusal.OVER_LIMIT,)
    await control(http, f"staff/{MARIA}", limits=maria["limits"], roles=["support"])
    assert await refusals() == (Refusal.NO_RIGHT,)
    await control(http, f"staff/{MARIA}", roles=maria["roles"], active=False)
    assert await refusals() == (Refusal.NOT_ACTIVE,)
    await control(http, f"staff/{MARIA}", active=True, keys=[])
    assert await refusals() == (Refusal.UNKNOWN_KEY,)


async def test_what_is_no_approval_of_this_proposal_does_not_count(
    cases: Cases, request_of: Any, signer: Signer
) -> None:
    """Whatever stands in the run's state is verified again."""
    tokens = {
        signer.decision(proposal(), "reject").token: Refusal.NO_RIGHT,
        signer.decision(proposal(proposal_id="f" * 32)).token: Refusal.OTHER_PROPOSAL,
        signer.decision(proposal(), key_of=TOM).token: Refusal.BAD_SIGNATURE,
        signer.decision(proposal(), iss="no@northwind.example").token: Refusal.UNKNOWN_PERSON,
        "no.statement.": Refusal.MALFORMED,
    }
    case = await read(cases, request_of(), proposal=proposal(), approvals=tuple(tokens))
    assert [now.refusal for now in case.standings] == list(tokens.values())


async def test_our_refund_is_seen_although_the_order_was_paid_anew(
    cases: Cases, activities: Activities, request_of: Any, http: httpx.AsyncClient
) -> None:
    """P1: another payment on the order must not hide the refund that this request has made."""
    await activities.payments.make_refund(refund_order())
    await control(http, "orders/8890", payment="pi_8899")
    case = await read(cases, request_of(), proposal=proposal())
    scope = request_scope("local", "8890", REQUEST)
    assert isinstance(case.find_ours(scope, proposal()), Ours)


async def test_a_new_payment_is_shown_where_nothing_was_refunded(
    cases: Cases, request_of: Any, http: httpx.AsyncClient
) -> None:
    """The run then sees that its proposal is for another payment."""
    await control(http, "orders/8890", payment="pi_8899")
    case = await read(cases, request_of(), proposal=proposal())
    assert case.payment is not None
    assert case.payment.id == "pi_8899"


PARTS = [
    ("orders", "orders.get"),
    ("policy", "policy.get"),
    ("staff", "staff.list"),
    ("payments", "refunds.list"),
    ("payments", "payment_intents.retrieve"),
]


@pytest.mark.parametrize(("system", "operation"), PARTS)
@pytest.mark.parametrize("what", ["drop_before", "fail_before"])
async def test_a_part_of_the_facts_is_no_case(
    cases: Cases,
    request_of: Any,
    http: httpx.AsyncClient,
    system: str,
    operation: str,
    what: str,
) -> None:
    """One system down is an error to retry, never a case with a hole in it."""
    await set_faults(http, {"system": system, "operation": operation, "what": what})
    with pytest.raises(OutsideError) as raised:
        await read(cases, request_of())
    assert raised.value.retry


async def test_the_customers_address_stays_out_of_errors(
    cases: Cases, request_of: Any, http: httpx.AsyncClient
) -> None:
    """R54: what goes into the history names the order and not the person."""
    await set_faults(http, {"system": "orders", "operation": "orders.get", "what": "drop_before"})
    with pytest.raises(Unreachable, match="order 8890") as raised:
        await read(cases, request_of())
    assert "ada" not in str(raised.value).lower()
