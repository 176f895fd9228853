"""The stand-in model behind an OpenAI-compatible chat-completions endpoint."""

import dataclasses
import json
import secrets
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from northwind.faults import suffer
from northwind.model import Facts, assess, count_tokens, customers_words, order_id_in
from northwind.systems import Systems

MODEL = "northwind-stand-in-rules"
OWNER = "Northwind (rule-based stand-in, not a language model)"
READ_TOOLS = ("look_up_order", "read_policy", "past_refunds")


class Call(BaseModel):
    """Which function a tool call names."""

    name: str


class ToolCall(BaseModel):
    """A tool call of an earlier answer."""

    id: str
    function: Call


class Message(BaseModel):
    """One message of the conversation; parts other than text are ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None

    def text(self) -> str:
        """The message as one text."""
        if isinstance(self.content, list):
            return "\n".join(str(part.get("text", "")) for part in self.content)
        return self.content or ""


class Function(BaseModel):
    """A function that the caller offers, with the JSON schema of its arguments."""

    name: str
    parameters: dict[str, Any] = {}


class Tool(BaseModel):
    """A tool that the caller offers."""

    function: Function


class ChatRequest(BaseModel):
    """What a chat-completions request must have; whatever else it has is ignored."""

    model: str
    messages: Annotated[list[Message], Field(min_length=1)]
    tools: list[Tool] | None = None
    stream: bool | None = None


def model_error(status: int) -> Response:
    """The error answer of an OpenAI-compatible endpoint."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return _error(status, "The stand-in was told to fail.", kind, None)


class ModelApi:
    """Answers as the model would, from nothing but what the request contains, and the clock."""

    def __init__(self, systems: Systems) -> None:
        """Take the clock and the fault plan of the company."""
        self._systems = systems

    def routes(self) -> list[Route]:
        """What is served under /v1."""
        return [
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/models", self._models),
        ]

    async def _models(self, request: Request) -> Response:
        card = {"id": MODEL, "object": "model", "created": 0, "owned_by": OWNER}
        return JSONResponse({"object": "list", "data": [card]})

    async def _chat(self, request: Request) -> Response:
        body = await request.body()
        faults = self._systems.faults
        return await suffer(
            faults,
            faults.take("chat", body.decode(errors="replace")),
            lambda: self._answer(request, body),
            error=model_error,
        )

    def _answer(self, request: Request, body: bytes) -> Response:
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            return _error(401, "You didn't provide an API key.", "invalid_request_error", None)
        try:
            chat = ChatRequest.model_validate_json(body)
        except ValidationError as invalid:
            first = invalid.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            return _error(400, f"{where}: {first['msg']}", "invalid_request_error", None)
        if chat.model != MODEL:
            return _error(
                404,
                f"The model `{chat.model}` does not exist: this is {MODEL}.",
                "invalid_request_error",
                "model_not_found",
            )
        if chat.stream:
            return _error(
                400, "This stand-in does not stream.", "invalid_request_error", "unsupported_value"
            )
        return JSONResponse(self._completion(chat, prompt_tokens=count_tokens(body.decode())))

    def _completion(self, chat: ChatRequest, prompt_tokens: int) -> dict[str, Any]:
        message = self._next_message(chat)
        completion_tokens = count_tokens(message)
        now = self._systems.clock.now()
        return {
            "id": f"chatcmpl-{secrets.token_hex(12)}",
            "object": "chat.completion",
            "created": int(now.timestamp()),
            "model": MODEL,
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": None,
                    "finish_reason": "tool_calls" if "tool_calls" in message else "stop",
                }
            ],
            "usage": {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": prompt_tokens + completion_tokens,
            },
        }

    def _next_message(self, chat: ChatRequest) -> dict[str, Any]:
        offered = {tool.function.name: tool.function for tool in chat.tools or []}
        results = tool_results(chat.messages)
        missing = [name for name in READ_TOOLS if name in offered and name not in results]
        order_id = order_id_in([m.text() for m in chat.messages if m.role != "assistant"])
        if missing:
            return _tool_calls(
                [
                    (offered[name], _fitting(offered[name], {"order_id": order_id}))
                    for name in missing
                ]
            )
        letters = [m.text() for m in chat.messages if m.role == "user"]
        assessment = dataclasses.asdict(
            assess(
                customers_words(letters[0]) if letters else "",
                Facts(*(results.get(name, "") for name in READ_TOOLS)),
                self._systems.clock.now(),
            )
        )
        submit = next((f for name, f in offered.items() if name not in READ_TOOLS), None)
        if submit is None:
            return {"role": "assistant", "content": json.dumps(assessment, ensure_ascii=False)}
        return _tool_calls([(submit, _fitting(submit, assessment))])


def tool_results(messages: list[Message]) -> dict[str, str]:
    """The latest result of each tool, by the tool's name."""
    names = {
        call.id: call.function.name for message in messages for call in message.tool_calls or []
    }
    return {
        names[message.tool_call_id]: message.text()
        for message in messages
        if message.role == "tool" and message.tool_call_id in names
    }


def _fitting(function: Function, arguments: dict[str, Any]) -> dict[str, Any]:
    """Those of the arguments that the function's schema knows."""
    known = function.parameters.get("properties", {})
    return {name: value for name, value in arguments.items() if name in known}


def _tool_calls(calls: list[tuple[Function, dict[str, Any]]]) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{secrets.token_hex(8)}",
                "type": "function",
                "function": {
                    "name": function.name,
                    "arguments": json.dumps(arguments, ensure_ascii=False),
                },
            }
            for function, arguments in calls
        ],
    }


def _error(status: int, message: str, kind: str, code: str | None) -> Response:
    return JSONResponse(
        {"error": {"message": message, "type": kind, "param": None, "code": code}}, status
    )
