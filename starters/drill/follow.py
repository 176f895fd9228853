"""Follows a run by its history, and so without giving its workers anything to do."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator

from temporalio.api.enums.v1 import EventType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.service import RPCError, RPCStatusCode

from domain import names
from domain.models import Stage
from starters import runs

# What our own passing of time writes into a history is no progress.
_OURS = frozenset(
    {
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED,
        EventType.EVENT_TYPE_WORKFLOW_EXECUTION_TIME_SKIPPING_TRANSITIONED,
    }
)
# A run that shows nothing new for so long waits for time to pass, or for an Activity to time out.
_QUIET_SECONDS = 1.5
_PAUSE_SECONDS = 0.2


class Follower:
    """Remembers how far it has seen each run of an order."""

    def __init__(self) -> None:
        """Nothing is seen yet."""
        self._seen: dict[str, int] = {}
        self.progress = time.monotonic()
        """When a run has last got on by itself, by the monotonic clock in seconds."""

    async def events(self, run: runs.Found) -> AsyncGenerator[HistoryEvent | None, None]:
        """Each new event of the run, and None whenever nothing has come for long.

        The run is asked nothing for this: queries are work for a worker that has little time.
        """
        run_id = run.run_id
        events = run.handle.fetch_history_events(wait_new_event=True)
        coming = asyncio.ensure_future(anext(events, None))
        try:
            while True:
                done, _ = await asyncio.wait((coming,), timeout=_QUIET_SECONDS)
                if not done:
                    yield None
                    continue
                event = coming.result()
                if event is None:
                    return
                coming = asyncio.ensure_future(anext(events, None))
                # After a lost connection the history is read from its beginning.
                if event.event_id > self._seen.get(run_id, 0):
                    self._seen[run_id] = event.event_id
                    if event.event_type not in _OURS:
                        self.progress = time.monotonic()
                    yield event
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)


def begins_to_wait(event: HistoryEvent) -> bool:
    """Whether the run has just shown that it waits for a decision."""
    shown = event.upsert_workflow_search_attributes_event_attributes.search_attributes
    stage = shown.indexed_fields.get(names.ATTRIBUTE_STAGE)
    return stage is not None and json.loads(stage.data) == Stage.AWAITING_APPROVAL.value


def reads_a_refund(event: HistoryEvent) -> bool:
    """Whether the run has come to the verification of a refund."""
    scheduled = event.activity_task_scheduled_event_attributes
    return scheduled.activity_type.name == "read_refund"
