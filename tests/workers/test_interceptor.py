"""What Temporal records of a failure: its kind and when to come again, and nobody's secrets."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.interfaces import RefundQuery
from domain.errors import Misconfigured, ModelMisconfigured, OutsideError, RateLimited, Unreachable
from workers.interceptor import RefundInterceptor


class Doing(ActivityInboundInterceptor):
    """The innermost: does what a test wants an Activity to do."""

    def __init__(self, what: Callable[[], Any]) -> None:
        """Nothing is behind this one."""
        self._what = what

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        """Do it."""
        return self._what()


async def execute(what: Callable[[], Any], *args: Any) -> Any:
    """Run something as an Activity of a worker of environment `local`."""
    guard = RefundInterceptor("local").intercept_activity(Doing(what))
    call = ExecuteActivityInput(fn=what, args=args, executor=None, headers={})
    return await ActivityEnvironment().run(guard.execute_activity, call)


def fail(error: Exception) -> Callable[[], Any]:
    """An Activity that fails."""

    def raise_it() -> Any:
        raise error

    return raise_it


QUERY = RefundQuery(environment="local", refund_id="re_1")

FAILURES: list[Any] = [
    (Unreachable("gone"), "unreachable", False, None),
    (RateLimited("slow", retry_after_seconds=30), "rate_limited", False, timedelta(seconds=30)),
    (RateLimited("slow", retry_after_seconds=10**9), "rate_limited", False, timedelta(hours=1)),
    (RateLimited("slow", retry_after_seconds=1e300), "rate_limited", False, timedelta(hours=1)),
    (RateLimited("slow", retry_after_seconds=0), "rate_limited", False, None),
    (Misconfigured("look at X"), "misconfigured", False, None),
    (ModelMisconfigured("look at X"), "model_misconfigured", True, None),
]


@pytest.mark.parametrize(("error", "kind", "final", "delay"), FAILURES)
async def test_an_error_of_the_outside_keeps_its_kind_and_its_wait(
    error: OutsideError, kind: str, delay: timedelta | None, *, final: bool
) -> None:
    """R42: what the other side asked for becomes the delay of the next attempt, within an hour."""
    with pytest.raises(ApplicationError) as raised:
        await execute(fail(error), QUERY)
    failure = raised.value
    assert (failure.type, failure.message) == (kind, str(error))
    assert (failure.non_retryable, failure.next_retry_delay) == (final, delay)


async def test_an_unexpected_exception_tells_its_type_and_place_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """R54: its message may quote a customer or a key, so neither history nor log has it."""
    with pytest.raises(ApplicationError) as raised:
        await execute(fail(ValueError("ada.park@customers.example sk_test_s3cret")), QUERY)
    failure = raised.value
    assert (failure.type, failure.non_retryable) == ("unexpected", False)
    assert "ValueError" in failure.message
    assert failure.__cause__ is None
    assert failure.__suppress_context__
    assert "test_interceptor.py" in caplog.text
    for text in (failure.message, caplog.text):
        assert "ada.park" not in text
        assert "s3cret" not in text


@pytest.mark.parametrize(
    "args",
    [(), ("local",), (QUERY.model_copy(update={"environment": "production"}),)],
    ids=["nothing", "no model", "another"],
)
async def test_work_of_another_environment_is_not_done(args: tuple[Any, ...]) -> None:
    """A worker of `local` touches nothing of `production`; the right worker will come."""
    done: list[str] = []
    with pytest.raises(ApplicationError) as raised:
        await execute(lambda: done.append("done"), *args)
    assert (raised.value.type, raised.value.non_retryable) == ("wrong_environment", False)
    assert done == []


async def test_what_succeeds_passes_through() -> None:
    """The guard changes no result."""
    assert await execute(lambda: "result", QUERY) == "result"


def test_nothing_of_it_is_around_workflows() -> None:
    """Else a replay, which is built without it, would not run workflows as a worker does."""
    ours = RefundInterceptor.workflow_interceptor_class
    assert ours is Interceptor.workflow_interceptor_class
