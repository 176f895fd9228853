"""The model: one request per Activity, its answer validated here and paid for once."""

import asyncio
import hashlib
from importlib import import_module
from typing import TYPE_CHECKING, Self

from temporalio import activity

from activities.interfaces import AgentActivities, ToolResults, ToolsQuery
from activities.ledger import Ledger
from activities.model_access import ModelAccess
from activities.model_answer import read_answer
from activities.tools import Tools
from activities.watch import NoWatch, Watch
from domain.agent import ModelAnswer, ModelRequest
from domain.moments import Moment

if TYPE_CHECKING:
    from activities.model_client import ModelClient

_EFFECT = "model"


class Agent(AgentActivities):
    """Asks a model, and runs its read-only tools."""

    def __init__(
        self, access: ModelAccess, ledger: Ledger, tools: Tools, watch: Watch | None = None
    ) -> None:
        """Open no connection yet.

        Args:
            access: Which model, and how to get at it.
            ledger: Keeps answers that were received.
            tools: What the model may read.
            watch: Is told of each request.
        """
        self._access = access
        self._ledger = ledger
        self._tools = tools
        self._watch = watch or NoWatch()
        self._opening = asyncio.Lock()
        self._client: ModelClient | None = None

    async def __aenter__(self) -> Self:
        # The first refund of a worker need not wait for the libraries to load.
        self._loading = asyncio.create_task(self._open())
        return self

    async def __aexit__(self, *_: object) -> None:
        # What went wrong with loading is raised where the model is asked.
        await asyncio.gather(self._loading, return_exceptions=True)
        if self._client is not None:
            await self._client.close()

    @activity.defn
    async def ask_model(self, request: ModelRequest) -> ModelAnswer:
        """Ask the model once; a received answer is kept by key and used again on a repeat.

        Raises:
            OutsideError: no answer was received.
        """
        digest = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
        kept = await self._ledger.find_result(request.key, digest)
        if kept is not None:
            return ModelAnswer.model_validate_json(kept)
        client = await self._open()
        await self._watch.at(_EFFECT, Moment.BEFORE)
        raw = await client.ask(request.order_id, request.letter, request.turns)
        await self._watch.at(_EFFECT, Moment.DONE)
        answer = read_answer(raw)
        await self._ledger.keep_result(request.key, digest, answer.model_dump_json())
        await self._watch.at(_EFFECT, Moment.RECORDED)
        return answer

    @activity.defn
    async def use_tools(self, query: ToolsQuery) -> ToolResults:
        """Run read-only tools for the model; one that fails tells it so."""
        return await self._tools.use(query)

    async def _open(self) -> "ModelClient":
        """The client. Its libraries take seconds to load.

        They load in a thread, so that workflow tasks and other Activities go on meanwhile.
        """
        async with self._opening:
            if self._client is None:
                module = await asyncio.to_thread(import_module, "activities.model_client")
                client: ModelClient = module.ModelClient(self._access)
                self._client = client
            return self._client
