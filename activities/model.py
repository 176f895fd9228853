"""The model: one request per Activity, its answer validated here and paid for once."""

import asyncio
import hashlib
from collections.abc import Sequence
from typing import Self

from openai import AsyncOpenAI
from pydantic import ValidationError
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from temporalio import activity

from activities.interfaces import AgentActivities, ToolQuery
from activities.ledger import Ledger
from activities.model_prompt import PARAMETERS, SUBMIT, TOOL_NAMES, conversation
from activities.tools import Tools
from domain.agent import CALLS_PER_TURN, ModelAnswer, ModelRequest, ToolCall, ToolResult
from domain.errors import (
    BadAnswer,
    Misconfigured,
    OutsideError,
    RateLimited,
    ServerFault,
    Unreachable,
)
from domain.models import Assessment, TokenUsage
from domain.names import order_of_workflow

# A long answer takes its time; less than the Activity's start-to-close (90 s).
ANSWER_SECONDS = 75.0


class Agent(AgentActivities):
    """Asks a model behind an OpenAI-compatible API, and runs its read-only tools."""

    def __init__(
        self, model_name: str, api_key: str, base_url: str | None, ledger: Ledger, tools: Tools
    ) -> None:
        """Open no connection yet.

        Args:
            model_name: The model, by the provider's name.
            api_key: Shown to nobody but the provider.
            base_url: Where the API is; None for OpenAI itself.
            ledger: Keeps answers that were received.
            tools: What the model may read.
        """
        # Temporal retries; the client's own retries would only hide attempts.
        self._client = AsyncOpenAI(
            api_key=api_key, base_url=base_url, max_retries=0, timeout=ANSWER_SECONDS
        )
        self._model = OpenAIChatModel(
            model_name, provider=OpenAIProvider(openai_client=self._client)
        )
        self._ledger = ledger
        self._tools = tools

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
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
        answer = _read(await self._ask(request), self._model.model_name)
        await self._ledger.keep_result(request.key, digest, answer.model_dump_json())
        return answer

    @activity.defn
    async def look_up_order(self, query: ToolQuery) -> ToolResult:
        """Tell the model about the run's order."""
        return await self._tools.look_up_order(query)

    @activity.defn
    async def read_policy(self, query: ToolQuery) -> ToolResult:
        """Tell the model the policy's text."""
        return await self._tools.read_policy(query)

    @activity.defn
    async def past_refunds(self, query: ToolQuery) -> ToolResult:
        """Tell the model which refunds the order has had."""
        return await self._tools.past_refunds(query)

    async def _ask(self, request: ModelRequest) -> ModelResponse:
        messages = conversation(_order_of(request.key), request.letter, request.turns)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await model_request(
                    self._model, messages, model_request_parameters=PARAMETERS
                )
        except (ModelAPIError, UnexpectedModelBehavior, TimeoutError) as error:
            raise _outside_error(error) from None


def _order_of(key: str) -> str:
    """The run's order, from the idempotency key of the request."""
    parts = key.split("/")
    return (order_of_workflow(parts[1]) if len(parts) > 1 else None) or "unknown"


def _read(response: ModelResponse, model_name: str) -> ModelAnswer:
    """Validate an answer; what is wrong with it is told to the model, not raised."""
    model = (response.model_name or model_name)[:100]
    usage = TokenUsage(
        requests=1,
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
    )
    parts = [part for part in response.parts if isinstance(part, ToolCallPart)]
    try:
        if any(part.tool_name == SUBMIT for part in parts):
            return ModelAnswer(model=model, assessment=_assessment(parts), usage=usage)
        return ModelAnswer(model=model, calls=_calls(parts), usage=usage)
    except _BadOutput as problem:
        cut = " It was cut off: be shorter." if response.finish_reason == "length" else ""
        return ModelAnswer(model=model, problem=f"{problem}{cut}"[:300], usage=usage)


class _BadOutput(ValueError):
    """The model's answer cannot be used; the message says why, for the model and the trail."""


def _assessment(parts: Sequence[ToolCallPart]) -> Assessment:
    if len(parts) > 1:
        raise _BadOutput(f"call {SUBMIT} once and alone, after the other tools have answered.")
    try:
        return Assessment.model_validate_json(_arguments(parts[0]))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "its JSON"
        raise _BadOutput(
            f"the arguments of {SUBMIT} are wrong in {place}: {first['msg']}."
        ) from None


def _calls(parts: Sequence[ToolCallPart]) -> tuple[ToolCall, ...]:
    if not parts:
        raise _BadOutput("text without a tool call. Call a tool.")
    if len(parts) > CALLS_PER_TURN:
        raise _BadOutput(f"{len(parts)} tool calls at once; at most {CALLS_PER_TURN} are allowed.")
    if len({part.tool_call_id for part in parts}) < len(parts):
        raise _BadOutput("two tool calls with the same id.")
    return tuple(_call(part) for part in parts)


def _call(part: ToolCallPart) -> ToolCall:
    if part.tool_name not in TOOL_NAMES:
        raise _BadOutput(f"there is no tool {part.tool_name[:64]!r}.")
    try:
        part.args_as_dict(raise_if_invalid=True)
        return ToolCall(
            call_id=part.tool_call_id, tool=part.tool_name, arguments=_arguments(part) or "{}"
        )
    except (ValueError, AssertionError):
        raise _BadOutput(f"the arguments of {part.tool_name} are no short JSON object.") from None


def _arguments(part: ToolCallPart) -> str:
    """The arguments as the model wrote them."""
    return part.args if isinstance(part.args, str) else part.args_as_json_str()


def _outside_error(error: Exception) -> OutsideError:
    """Our error for one of the SDK's. The provider's words stay out: they may quote the prompt."""
    if isinstance(error, ModelHTTPError):
        status, wait = error.status_code, _retry_after_seconds(error)
        if status == 429:
            return RateLimited("the model says not now (429)", retry_after_seconds=wait)
        if status >= 500 or status in (408, 409):
            return ServerFault(f"the model's server failed ({status})", retry_after_seconds=wait)
        if status in (401, 403):
            return Misconfigured(f"the model is not for us ({status}); look at OPENAI_API_KEY")
        setting = "NORTHWIND_MODEL_BASE_URL and NORTHWIND_MODEL_NAME"
        return Misconfigured(f"the model refuses the request ({status}); look at {setting}")
    if isinstance(error, ModelConnectionError | TimeoutError):
        return Unreachable("no answer from the model")
    return BadAnswer("an answer that is not the model API's")


def _retry_after_seconds(error: ModelHTTPError) -> float | None:
    text = (error.headers or {}).get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None
