"""Both forms in which a model may answer, behind one way to say what it answers next.

The OpenAI form is spoken by the company, the other one by recorded answers.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import httpx

from activities.model import Agent
from tests.activities.recorded_api import Answer, RecordedApi, recorded
from tests.northwind.support import books, set_faults

# The tokens of every answer that a test makes up; some of the first are read from a cache or
# written to one, where the API tells these apart.
INPUT_TOKENS, OUTPUT_TOKENS = 7, 3


class Ending(StrEnum):
    """How an answer ended."""

    WHOLE = "whole"
    CUT_OFF = "cut_off"
    REFUSED = "refused"


@dataclass(frozen=True)
class Call:
    """A tool call; the arguments are JSON, or what a model takes for it."""

    tool: str
    arguments: str = "{}"
    call_id: str = "c1"


@dataclass(frozen=True)
class Said:
    """An answer of the model, in no provider's form."""

    calls: tuple[Call, ...] = ()
    text: str = ""
    """Of a refusal: its reason."""
    ending: Ending = Ending.WHOLE


class Speaker(ABC):
    """A model whose next answer a test decides."""

    def __init__(self, agent: Agent) -> None:
        """Answer this adapter."""
        self.agent = agent

    async def say(self, said: Said) -> None:
        """Answer the next request with this."""
        await self.answer(200, self.form(said))

    @abstractmethod
    def form(self, said: Said) -> Any:
        """The body of an answer."""

    @abstractmethod
    async def answer(
        self, status: int, body: Any = None, headers: dict[str, str] | None = None
    ) -> None:
        """Answer the next request with this status, and with the provider's usual body for it."""

    @abstractmethod
    async def drop(self) -> None:
        """Close the connection of the next request without an answer."""

    @abstractmethod
    async def requests(self) -> int:
        """How many requests there were."""


def chat_completion(said: Said) -> dict[str, Any]:
    """The body of an answer in the OpenAI form."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text or None}
    finish = {Ending.CUT_OFF: "length", Ending.REFUSED: "content_filter"}.get(
        said.ending, "tool_calls" if said.calls else "stop"
    )
    if said.ending is Ending.REFUSED and said.text:
        finish, message = "stop", message | {"content": None, "refusal": said.text}
    if said.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.tool, "arguments": call.arguments},
            }
            for call in said.calls
        ]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "northwind-stand-in-rules",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": INPUT_TOKENS,
            "completion_tokens": OUTPUT_TOKENS,
            "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
        },
    }


class OpenAiSpeaker(Speaker):
    """The company's model."""

    def __init__(self, agent: Agent, http: httpx.AsyncClient) -> None:
        """Speak by the company's fault plan."""
        super().__init__(agent)
        self._http = http

    def form(self, said: Said) -> Any:
        """A chat completion."""
        return chat_completion(said)

    async def answer(
        self, status: int, body: Any = None, headers: dict[str, str] | None = None
    ) -> None:
        """Set a row that fires once."""
        row = {"what": "status", "status": status, "body": body, "headers": headers or {}}
        await set_faults(self._http, {"system": "model", "operation": "chat", **row})

    async def drop(self) -> None:
        """Set a row that fires once."""
        row = {"system": "model", "operation": "chat", "what": "drop_after"}
        await set_faults(self._http, row)

    async def requests(self) -> int:
        """By the company's books."""
        count: int = (await books(self._http))["model_requests"]
        return count


class AnthropicSpeaker(Speaker):
    """Recorded answers of the Messages API."""

    def __init__(self, agent: Agent, api: RecordedApi) -> None:
        """Speak by this server."""
        super().__init__(agent)
        self.api = api

    def form(self, said: Said) -> Any:
        """A message, made from the recorded one with the same ending."""
        names = {Ending.CUT_OFF: "max_tokens", Ending.REFUSED: "refusal"}
        name = names.get(said.ending, "tool_use" if said.calls else "end_turn")
        body = recorded(name).body
        if said.ending is Ending.REFUSED:
            return body | {"stop_details": body["stop_details"] | {"explanation": said.text}}
        text = [{"type": "text", "text": said.text}] if said.text else []
        calls = [
            {
                "type": "tool_use",
                "id": call.call_id,
                "name": call.tool,
                "input": json.loads(call.arguments),
            }
            for call in said.calls
        ]
        return body | {"content": [*text, *calls]}

    async def answer(
        self, status: int, body: Any = None, headers: dict[str, str] | None = None
    ) -> None:
        """Put an answer in; the body of an error is the recorded one."""
        usual = recorded(f"error_{status}") if body is None else Answer(status, body, {})
        self.api.put(replace(usual, headers=headers or {}))

    async def drop(self) -> None:
        """Put a lost answer in."""
        self.api.put(None)

    async def requests(self) -> int:
        """As the server received them."""
        return len(self.api.received)
