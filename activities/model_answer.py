"""What the model answered, validated: tools to run, an assessment, or what is wrong with it.

It happens here and not in the workflow, where an answer that does not parse would fail its task for
ever.
"""

from dataclasses import dataclass

import pydantic_core
from pydantic import ValidationError

from activities.model_prompt import SUBMIT, TOOL_NAMES
from domain.agent import CALLS_PER_TURN, WORDS_LIMIT, ModelAnswer, ToolCall
from domain.models import Assessment, TokenUsage


@dataclass(frozen=True)
class RawCall:
    """A tool call as it came."""

    call_id: str
    tool: str
    arguments: str


@dataclass(frozen=True)
class RawAnswer:
    """An answer as it came."""

    model: str
    calls: tuple[RawCall, ...]
    text: str
    """What it said beside the calls, or instead of them."""
    refused: bool
    """Whether model or provider refused to answer."""
    cut_off: bool
    """Whether it ended because it became too long."""
    input_tokens: int
    output_tokens: int


class _BadOutput(ValueError):
    """The model's answer cannot be used; the message says why, for the model and the trail."""


def read_answer(raw: RawAnswer) -> ModelAnswer:
    """Validate an answer; what is wrong with it is told to the model, not raised."""
    model = _valid_text(raw.model)[:100]
    usage = TokenUsage(requests=1, input_tokens=raw.input_tokens, output_tokens=raw.output_tokens)
    try:
        _check_ending(raw)
        if any(call.tool == SUBMIT for call in raw.calls):
            return ModelAnswer(model=model, assessment=_assessment(raw.calls), usage=usage)
        return ModelAnswer(model=model, calls=_calls(raw.calls), usage=usage)
    except _BadOutput as problem:
        return ModelAnswer(model=model, problem=str(problem)[:300], words=_words(raw), usage=usage)


def _check_ending(raw: RawAnswer) -> None:
    """Where an answer ended before its end, its parts may fit and still be halves."""
    if raw.refused:
        raise _BadOutput("the model refused to answer. Say in your assessment what is in the way.")
    if raw.cut_off:
        raise _BadOutput("the answer was cut off: be shorter.")


def _words(raw: RawAnswer) -> str:
    """The beginning of what the model said, for people."""
    calls = [f"{call.tool[:64]} {call.arguments[:WORDS_LIMIT]}" for call in raw.calls[:2]]
    said = " ".join([raw.text[:WORDS_LIMIT], *calls])
    return _valid_text(said).strip()[:WORDS_LIMIT]


def _valid_text(text: str) -> str:
    """Without halves of characters, which JSON can carry and nobody can store."""
    return text.encode(errors="replace").decode()


def _assessment(calls: tuple[RawCall, ...]) -> Assessment:
    if len(calls) > 1:
        raise _BadOutput(f"call {SUBMIT} once and alone, after the other tools have answered.")
    try:
        return Assessment.model_validate_json(calls[0].arguments)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "its JSON"
        raise _BadOutput(
            f"the arguments of {SUBMIT} are wrong in {place}: {first['msg']}."
        ) from None


def _calls(calls: tuple[RawCall, ...]) -> tuple[ToolCall, ...]:
    if not calls:
        raise _BadOutput("text without a tool call. Call a tool.")
    if len(calls) > CALLS_PER_TURN:
        raise _BadOutput(f"{len(calls)} tool calls at once; at most {CALLS_PER_TURN} are allowed.")
    if len({call.call_id for call in calls}) < len(calls):
        raise _BadOutput("two tool calls with the same id.")
    return tuple(_call(call) for call in calls)


def _call(call: RawCall) -> ToolCall:
    if call.tool not in TOOL_NAMES:
        raise _BadOutput(f"there is no tool {call.tool[:64]!r}.")
    arguments = call.arguments or "{}"
    try:
        # This reader has a bound on nesting, which is one more thing that a model may get wrong.
        if isinstance(pydantic_core.from_json(arguments), dict):
            return ToolCall(call_id=call.call_id, tool=call.tool, arguments=arguments)
    except ValueError:
        pass
    raise _BadOutput(f"the arguments of {call.tool} are no short JSON object.")
