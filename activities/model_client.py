"""The model's API, by pydantic-ai's single requests: the workflow owns the loop.

Loading this module takes seconds, so nobody imports it before the model is first asked
(`activities.model`): a worker that restarts takes up waiting refunds at once.
"""

import asyncio

from openai import AsyncOpenAI
from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.tools import ToolDefinition

from activities.model_answer import RawAnswer, RawCall
from activities.model_prompt import SYSTEM_PROMPT, TOOLS, first_words
from domain.agent import Turn
from domain.errors import (
    BadAnswer,
    ModelMisconfigured,
    OutsideError,
    RateLimited,
    ServerFault,
    Unreachable,
)

# A long answer takes its time. Loading and the ledger's waits fit in beside it (90 s in all).
ANSWER_SECONDS = 60.0

_PARAMETERS = ModelRequestParameters(
    function_tools=[
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=tool.arguments
        )
        for tool in TOOLS
    ],
    # An answer without a tool call is of no use, so the provider is asked to rule it out.
    allow_text_output=False,
)


class ModelClient:
    """A model behind an OpenAI-compatible API."""

    def __init__(self, model_name: str, api_key: str, base_url: str | None) -> None:
        """Open no connection yet; see `activities.model.Agent` for the arguments."""
        # Temporal retries; the client's own retries would only hide attempts.
        self._client = AsyncOpenAI(
            api_key=api_key, base_url=base_url, max_retries=0, timeout=ANSWER_SECONDS
        )
        provider = OpenAIProvider(openai_client=self._client)
        self._model = OpenAIChatModel(model_name, provider=provider)

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def ask(self, order_id: str, letter: str, turns: tuple[Turn, ...]) -> RawAnswer:
        """Send the conversation so far, and receive one answer.

        Raises:
            OutsideError: no answer was received.
        """
        messages = _conversation(order_id, letter, turns)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                response = await model_request(
                    self._model, messages, model_request_parameters=_PARAMETERS
                )
        except (ModelAPIError, UnexpectedModelBehavior, TimeoutError) as error:
            raise _outside_error(error) from None
        return _raw(response, self._model.model_name)


def _conversation(order_id: str, letter: str, turns: tuple[Turn, ...]) -> list[ModelMessage]:
    first = UserPromptPart(first_words(order_id, letter))
    messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(SYSTEM_PROMPT), first])]
    for turn in turns:
        messages.extend(_messages_of(turn))
    return messages


def _messages_of(turn: Turn) -> list[ModelMessage]:
    problem = f"Your last answer could not be used: {turn.problem}"
    if not turn.calls:
        return [ModelRequest(parts=[UserPromptPart(problem)])]
    tools = {call.call_id: call.tool for call in turn.calls}
    answer = ModelResponse(
        parts=[
            ToolCallPart(tool_name=call.tool, args=call.arguments, tool_call_id=call.call_id)
            for call in turn.calls
        ]
    )
    results = [
        ToolReturnPart(
            tool_name=tools[result.call_id], content=result.content, tool_call_id=result.call_id
        )
        for result in turn.results
    ]
    return [answer, ModelRequest(parts=results)]


def _raw(response: ModelResponse, model_name: str) -> RawAnswer:
    calls = tuple(
        RawCall(
            call_id=part.tool_call_id,
            tool=part.tool_name,
            # As the model wrote them, also where they are no JSON.
            arguments=part.args if isinstance(part.args, str) else part.args_as_json_str(),
        )
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    return RawAnswer(
        model=response.model_name or model_name,
        calls=calls,
        cut_off=response.finish_reason == "length",
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
    )


def _outside_error(error: Exception) -> OutsideError:
    """Our error for one of the SDK's. The provider's words stay out: they may quote the prompt."""
    if isinstance(error, ModelHTTPError):
        status, wait = error.status_code, _retry_after_seconds(error)
        if status == 429:
            return RateLimited("the model says not now (429)", retry_after_seconds=wait)
        if status >= 500 or status in (408, 409):
            return ServerFault(f"the model's server failed ({status})", retry_after_seconds=wait)
        if status in (401, 403):
            return ModelMisconfigured(f"the model is not for us ({status}); look at OPENAI_API_KEY")
        setting = "NORTHWIND_MODEL_BASE_URL and NORTHWIND_MODEL_NAME"
        return ModelMisconfigured(f"the model refuses the request ({status}); look at {setting}")
    if isinstance(error, ModelConnectionError | TimeoutError):
        return Unreachable("no answer from the model")
    return BadAnswer("an answer that is not the model API's")


def _retry_after_seconds(error: ModelHTTPError) -> float | None:
    text = (error.headers or {}).get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None
