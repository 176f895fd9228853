"""What stands between Temporal and every Activity: the environment, and how failures look."""

import logging
import traceback
from typing import Any

from temporalio import activity
from temporalio.exceptions import FailureError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.failures import check_environment, to_failure, unexpected_failure
from domain.errors import OutsideError

_log = logging.getLogger(__name__)


class RefundInterceptor(Interceptor):
    """Guards all Activities of a worker."""

    def __init__(self, environment: str) -> None:
        """Let pass only what names this environment."""
        self._environment = environment

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002
        """Put the guard before the Activity."""
        return _Guard(next, self._environment)


class _Guard(ActivityInboundInterceptor):
    def __init__(self, inner: ActivityInboundInterceptor, environment: str) -> None:
        super().__init__(inner)
        self._environment = environment

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002
        try:
            asked = getattr(input.args[0], "environment", None) if input.args else None
            check_environment(asked, self._environment)
            return await super().execute_activity(input)
        except FailureError:
            raise
        except OutsideError as error:
            info = activity.info()
            _log.warning(
                "%s of %s, attempt %d: %s (%s)",
                info.activity_type,
                info.workflow_id,
                info.attempt,
                error,
                error.kind,
            )
            raise to_failure(error) from None
        except Exception as error:  # noqa: BLE001 (raised again, without its message)
            _log_place(error)
            raise unexpected_failure(error) from None


def _log_place(error: Exception) -> None:
    """Where it happened. The message is left out: it may quote a customer or a secret."""
    frames = traceback.extract_tb(error.__traceback__)
    place = " < ".join(f"{f.filename}:{f.lineno} {f.name}" for f in reversed(frames[-8:]))
    name = activity.info().activity_type
    _log.error("Activity %s failed by mistake: %s at %s", name, type(error).__name__, place)
