"""The bounded conversation with the model: what it is shown, may call and may answer."""

import json
from typing import Annotated

from pydantic import Field, StringConstraints

from domain.models import Assessment, Frozen, Identifier, TokenUsage

# One answer may ask for so many tools; more is a model that has lost its way.
CALLS_PER_TURN = 8
# What one tool may tell the model, in characters, whatever the outside answered.
TOOL_RESULT_LIMIT = 4_000
# What the trail keeps of an answer that cannot be used, in characters.
WORDS_LIMIT = 300
# Answers in a row that do not validate before the case goes to a person.
BAD_ANSWERS_LIMIT = 3


class ToolCall(Frozen):
    """A read-only tool that the model asked for. Arguments are its words and are not trusted."""

    call_id: Annotated[str, StringConstraints(max_length=128)]
    tool: Annotated[str, StringConstraints(max_length=64)]
    arguments: Annotated[str, StringConstraints(max_length=2_000)] = "{}"

    def fits(self, order_id: str) -> bool:
        """Whether it asks for nothing but this order: ids come from the run, never from a model."""
        try:
            named = json.loads(self.arguments).get("order_id", order_id)
        except (ValueError, AttributeError):
            return False
        return bool(named == order_id)


Calls = Annotated[tuple[ToolCall, ...], Field(max_length=CALLS_PER_TURN)]


class ToolResult(Frozen):
    call_id: str
    content: Annotated[str, StringConstraints(max_length=TOOL_RESULT_LIMIT)]


class Turn(Frozen):
    """One answer of the model with what came of it."""

    calls: Calls = ()
    results: tuple[ToolResult, ...] = ()
    problem: str = ""
    """What was wrong with the answer, as told to the model; empty where nothing was."""


class ModelRequest(Frozen):
    """One request to the model: the letter and all turns so far."""

    environment: Identifier
    key: str
    order_id: Identifier
    letter: str
    turns: tuple[Turn, ...] = ()


class ModelAnswer(Frozen):
    """A validated answer: tools to run, or an assessment, or the problem with it."""

    model: str
    calls: Calls = ()
    assessment: Assessment | None = None
    problem: str = ""
    words: Annotated[str, StringConstraints(max_length=WORDS_LIMIT)] = ""
    """Where there is a problem: the beginning of what the model said."""
    usage: TokenUsage = TokenUsage()
