"""The model's API, by pydantic-ai's single requests: the workflow owns the loop.

Loading this module takes seconds, so nobody imports it before the model is first asked
(`activities.model`): a worker that restarts takes up waiting refunds at once.
"""

import asyncio
import json
from typing import Any, Protocol

from pydantic_ai.direct import model_request
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from activities.model_access import ModelAccess
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
# Anthropic wants a bound. The longest assessment has some 500 tokens; not all models can be kept
# from thinking first.
ANSWER_TOKENS = 4_096

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


# What the libraries make of a body that is JSON and no answer depends on where they first miss
# something.
_NO_ANSWER = (
    UnexpectedModelBehavior,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


class _Connections(Protocol):
    async def close(self) -> None: ...


class ModelClient:
    """A model behind the API of one of the providers."""

    def __init__(self, access: ModelAccess) -> None:
        """Open no connection yet."""
        self._access = access
        # Loading one provider's library takes a second, so the other's stays out.
        connect = {"openai": _openai, "anthropic": _anthropic}[access.provider]
        self._connections, self._model, self._settings = connect(access)

    async def close(self) -> None:
        """Close all connections."""
        await self._connections.close()

    async def ask(self, order_id: str, letter: str, turns: tuple[Turn, ...]) -> RawAnswer:
        """Send the conversation so far, and receive one answer.

        Raises:
            OutsideError: no answer was received.
        """
        messages = _conversation(order_id, letter, turns)
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                response = await model_request(
                    self._model,
                    messages,
                    model_settings=self._settings,
                    model_request_parameters=_PARAMETERS,
                )
            return _raw(response, self._access.model_name)
        except (ModelAPIError, TimeoutError, *_NO_ANSWER) as error:
            raise _outside_error(error, self._access.key_setting) from None


def _openai(access: ModelAccess) -> tuple[_Connections, Model, ModelSettings]:
    from openai import AsyncOpenAI
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    # Temporal retries; the client's own retries would only hide attempts.
    client = AsyncOpenAI(
        api_key=access.api_key, base_url=access.base_url, max_retries=0, timeout=ANSWER_SECONDS
    )
    provider = OpenAIProvider(openai_client=client)
    return client, OpenAIChatModel(access.model_name, provider=provider), ModelSettings()


def _anthropic(access: ModelAccess) -> tuple[_Connections, Model, ModelSettings]:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    client = AsyncAnthropic(
        api_key=access.api_key, base_url=access.base_url, max_retries=0, timeout=ANSWER_SECONDS
    )
    provider = AnthropicProvider(anthropic_client=client)
    # A model that thinks may not be made to call a tool, and its thoughts would have to be sent
    # back whole with the next turn.
    settings = ModelSettings(max_tokens=ANSWER_TOKENS, thinking=False)
    return client, AnthropicModel(access.model_name, provider=provider), settings


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
            # As the model wrote them, also where they are no JSON or no object.
            arguments=part.args if isinstance(part.args, str) else _json(part.args),
        )
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    # A refusal comes without text; where it gives a reason, it stands here.
    refusal = (response.provider_details or {}).get("refusal")
    return RawAnswer(
        model=response.model_name or model_name,
        calls=calls,
        text="\n".join([*texts, str(refusal)] if refusal else texts),
        refused=bool(refusal) or response.finish_reason == "content_filter",
        cut_off=response.finish_reason == "length",
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
    )


def _json(arguments: Any) -> str:
    return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)


def _outside_error(error: Exception, key_setting: str) -> OutsideError:
    """Our error for one of the SDK's. The provider's words stay out: they may quote the prompt."""
    if isinstance(error, ModelHTTPError):
        return _refusal(error, key_setting)
    if isinstance(error, ModelConnectionError | TimeoutError):
        return Unreachable("no answer from the model")
    return BadAnswer("an answer that is not the model API's")


def _refusal(error: ModelHTTPError, key_setting: str) -> OutsideError:
    status, wait = error.status_code, _retry_after_seconds(error)
    if status == 429:
        return RateLimited("the model says not now (429)", retry_after_seconds=wait)
    if status >= 500 or status in (408, 409):
        return ServerFault(f"the model's server failed ({status})", retry_after_seconds=wait)
    if status in (401, 403):
        return ModelMisconfigured(f"the model is not for us ({status}); look at {key_setting}")
    if isinstance(error, ModelQuotaExceededError):
        words = f"the account has no credit left ({status}); look at the account of {key_setting}"
        return ModelMisconfigured(words)
    settings = "NORTHWIND_MODEL_BASE_URL and NORTHWIND_MODEL_NAME"
    return ModelMisconfigured(f"the model refuses the request ({status}); look at {settings}")


def _retry_after_seconds(error: ModelHTTPError) -> float | None:
    text = (error.headers or {}).get("retry-after", "")
    return float(text) if text.isascii() and text.isdigit() else None
