"""The watch: a drill can hold a worker at each moment of each effect, and nobody else can."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from temporalio.testing import ActivityEnvironment

from activities.interfaces import CaseQuery, OrderNotice, RefundQuery, StatementCheck
from activities.watch import DrillWatch, NoWatch
from domain.errors import NotNow
from domain.mail import MailFacts, MailOrder, MailPurpose, MailState
from domain.models import Contact
from domain.moments import Moment
from domain.names import ORDER_PURPOSE, idempotency_key, request_scope
from domain.request import RefundRequest
from domain.statements import StatementKind
from tests.activities.support import LETTER, REQUEST, model_request, proposal, refund_order
from tests.northwind.support import PATIENCE, books, refunds
from tests.signing import SAM, Signer
from workers.settings import Settings
from workers.wiring import Activities, build_activities


class Drill:
    """Writes down who asks, and answers when it is told to."""

    def __init__(self, socket: Path) -> None:
        """Everybody goes on at once, but for whoever comes to `holds_at`."""
        self.socket = socket
        self.holds_at = ""
        self.asked: list[dict[str, Any]] = []
        self.somebody_stands = asyncio.Event()
        self.goes_on = asyncio.Event()
        self._asking: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_unix_server(self._answer, path=str(self.socket))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.go_away()

    def go_away(self) -> None:
        """End without a word to those that are held."""
        self._server.close()
        for writer in self._asking:
            writer.close()

    @property
    def places(self) -> list[str]:
        """Where somebody stood, in this order."""
        return [told["place"] for told in self.asked]

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._asking.append(writer)
        told = json.loads(await reader.readline())
        self.asked.append(told)
        if told["place"] == self.holds_at:
            self.somebody_stands.set()
            await self.goes_on.wait()
        writer.write(b"go\n")
        with contextlib.suppress(OSError):
            await writer.drain()


@pytest.fixture
async def drill(tmp_path: Path) -> AsyncIterator[Drill]:
    """A drill that listens."""
    async with Drill(tmp_path / "drill.sock") as listening:
        yield listening


def activity() -> ActivityEnvironment:
    """The second attempt of an Activity of the run for order 8890."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, workflow_id="refund-order-8890", attempt=2)
    return environment


async def test_the_drill_hears_who_stands_where_and_says_when_to_go_on(drill: Drill) -> None:
    """Place, run, attempt and process; not a step before its word."""
    drill.holds_at = "refund.r1:done"
    at = activity().run(DrillWatch(drill.socket).at, "refund.r1", Moment.DONE)
    standing = asyncio.ensure_future(at)
    async with asyncio.timeout(PATIENCE):
        await drill.somebody_stands.wait()
        assert drill.asked == [
            {
                "place": "refund.r1:done",
                "workflow_id": "refund-order-8890",
                "attempt": 2,
                "pid": os.getpid(),
            }
        ]
        assert not standing.done()
        drill.goes_on.set()
        await standing


async def test_a_worker_goes_on_when_the_drill_goes_away(drill: Drill) -> None:
    """A drill that ends, or dies, holds nobody for ever."""
    drill.holds_at = "refund.r1:done"
    at = activity().run(DrillWatch(drill.socket).at, "refund.r1", Moment.DONE)
    standing = asyncio.ensure_future(at)
    async with asyncio.timeout(PATIENCE):
        await drill.somebody_stands.wait()
        drill.go_away()
        await standing


@pytest.mark.parametrize("left_over", [False, True])
async def test_a_worker_goes_on_where_there_is_no_drill(tmp_path: Path, *, left_over: bool) -> None:
    """Neither a socket that is not there nor a file that a dead drill left is an error."""
    socket = tmp_path / "drill.sock"
    if left_over:
        async with Drill(socket) as gone:
            gone.go_away()
        socket.touch()
    async with asyncio.timeout(PATIENCE):
        await activity().run(DrillWatch(socket).at, "refund.r1", Moment.DONE)


async def test_outside_a_drill_nobody_is_asked() -> None:
    """It asks nothing of where it is: not even that it is an Activity."""
    async with asyncio.timeout(PATIENCE):
        await NoWatch().at("refund.r1", Moment.DONE)


@pytest.fixture
async def watched(settings: Settings, drill: Drill) -> AsyncIterator[Activities]:
    """All adapters, wired as in the worker of a drill."""
    drilled = settings.model_copy(update={"drill_socket": drill.socket})
    async with build_activities(drilled) as built:
        yield built


async def do(effect: Callable[..., Awaitable[Any]], asked: Any) -> Any:
    """Run an Activity."""
    return await activity().run(effect, asked)


def mail() -> MailOrder:
    """The first mail to the customer."""
    facts = MailFacts(order_id="8890", workflow_id="refund-order-8890", customer="Ada Park")
    return MailOrder(
        environment="local",
        key=idempotency_key(request_scope("local", "8890", REQUEST), "mail.under_review"),
        purpose=MailPurpose.UNDER_REVIEW,
        to=(Contact(name="Ada Park", address="ada.park@customers.example"),),
        facts=facts,
    )


@asynccontextmanager
async def held(
    drill: Drill, place: str, effect: Callable[..., Awaitable[Any]], asked: Any
) -> AsyncIterator[None]:
    """An Activity stands at this place, and is cut off there at the end."""
    drill.holds_at = place
    doing = asyncio.ensure_future(do(effect, asked))
    async with asyncio.timeout(PATIENCE):
        await drill.somebody_stands.wait()
    yield
    doing.cancel()
    await asyncio.gather(doing, return_exceptions=True)
    drill.holds_at = ""


@pytest.mark.parametrize(("moment", "arrived"), [("before", 0), ("done", 1), ("recorded", 1)])
async def test_a_mail_is_held_where_the_moment_says(
    watched: Activities, drill: Drill, http: httpx.AsyncClient, moment: str, arrived: int
) -> None:
    """Nothing was sent; it has arrived and the ledger does not know; the ledger knows it."""
    place = f"mail.under_review:{moment}"
    async with held(drill, place, watched.mailer.send_mail, mail()):
        assert len((await books(http))["mails"]) == arrived
        if moment == "recorded":
            again = await do(watched.mailer.send_mail, mail())
            assert again.state is MailState.ALREADY_SENT
        else:
            with pytest.raises(NotNow):
                await do(watched.mailer.send_mail, mail())


@pytest.mark.parametrize(("moment", "requests"), [("before", 1), ("done", 2), ("recorded", 1)])
async def test_a_model_request_is_held_where_the_moment_says(
    watched: Activities, drill: Drill, http: httpx.AsyncClient, moment: str, requests: int
) -> None:
    """With the next attempt it is the first request, a second one, or none more."""
    async with held(drill, f"model:{moment}", watched.agent.ask_model, model_request()):
        pass
    await do(watched.agent.ask_model, model_request())
    assert (await books(http))["calls"]["chat"] == requests


@pytest.mark.parametrize(("moment", "made"), [("before", 0), ("done", 1)])
async def test_a_refund_is_held_where_the_moment_says(
    watched: Activities, drill: Drill, http: httpx.AsyncClient, moment: str, made: int
) -> None:
    """Not asked for yet; or made, and nobody here has it in writing."""
    async with held(drill, f"refund.r1:{moment}", watched.payments.make_refund, refund_order()):
        assert len(await refunds(http, "pi_8890")) == made


async def test_a_model_request_is_passed_at_three_moments(
    watched: Activities, drill: Drill
) -> None:
    """Before, answered, kept; a kept answer is no request."""
    for _ in range(2):
        await do(watched.agent.ask_model, model_request())
    assert drill.places == ["model:before", "model:done", "model:recorded"]


async def test_a_mail_is_passed_at_three_moments(watched: Activities, drill: Drill) -> None:
    """Before, taken by the server, in the ledger; a mail that was sent already passes none."""
    for _ in range(2):
        await do(watched.mailer.send_mail, mail())
    place = "mail.under_review"
    assert drill.places == [f"{place}:before", f"{place}:done", f"{place}:recorded"]


async def test_a_refund_is_passed_at_two_moments(watched: Activities, drill: Drill) -> None:
    """Before and made; a refund that was found is not made again, so there is no such moment."""
    for _ in range(2):
        await do(watched.payments.make_refund, refund_order())
    assert drill.places == ["refund.r1:before", "refund.r1:done"]


async def test_a_verification_is_passed_at_two_moments(watched: Activities, drill: Drill) -> None:
    """Before and read."""
    made = await do(watched.payments.make_refund, refund_order())
    drill.asked.clear()
    query = RefundQuery(environment="local", refund_id=made.refund.id)
    await do(watched.payments.read_refund, query)
    assert drill.places == ["verification:before", "verification:done"]


async def test_telling_the_order_service_is_passed_at_two_moments(
    watched: Activities, drill: Drill
) -> None:
    """Before, and noted; a repeat passes them again."""
    made = await do(watched.payments.make_refund, refund_order())
    drill.asked.clear()
    key = idempotency_key(request_scope("local", "8890", REQUEST), ORDER_PURPOSE)
    notice = OrderNotice(environment="local", key=key, order_id="8890", refund=made.refund)
    await do(watched.orders.tell_order_service, notice)
    assert drill.places == ["order.refunded:before", "order.refunded:done"]


async def test_a_statement_is_passed_at_two_moments(
    watched: Activities, drill: Drill, signer: Signer
) -> None:
    """By its kind; what nobody can read asks nobody, and passes none."""
    for token in (signer.decision(proposal()).token, "garbage"):
        check = StatementCheck(
            environment="local",
            token=token,
            kind=StatementKind.DECISION,
            proposal=proposal(),
            requester=SAM,
            customer="ada.park@customers.example",
            received_at=datetime.now(UTC),
        )
        await do(watched.decisions.verify_statement, check)
    assert drill.places == ["decision:before", "decision:done"]


async def test_a_reading_of_the_facts_is_passed_at_two_moments(
    watched: Activities, drill: Drill, signer: Signer
) -> None:
    """The first one and the one before the money have names of their own."""
    unsigned = RefundRequest(
        environment="local",
        order_id="8890",
        request_id=REQUEST,
        message=LETTER,
        requester=SAM,
        statement="",
    )
    request = unsigned.model_copy(update={"statement": signer.request(unsigned)})
    for proposed in (None, proposal()):
        query = CaseQuery(environment="local", request=request, proposal=proposed)
        await do(watched.cases.read_case, query)
    assert drill.places == ["facts:before", "facts:done", "recheck:before", "recheck:done"]
