"""One contract for every model: answers are checked here and paid for once (P5).

It runs over the OpenAI form, which the company speaks, and over recorded answers of Anthropic's.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from domain.agent import ToolResult, Turn
from domain.errors import (
    BadAnswer,
    ModelMisconfigured,
    OutsideError,
    RateLimited,
    ServerFault,
    Unreachable,
)
from domain.models import TokenUsage
from tests.activities.recorded_api import RecordedApi, recorded
from tests.activities.speakers import (
    INPUT_TOKENS,
    OUTPUT_TOKENS,
    AnthropicSpeaker,
    Call,
    Ending,
    OpenAiSpeaker,
    Said,
    Speaker,
)
from tests.activities.support import MovableClock, model_request
from workers.settings import Settings
from workers.wiring import build_activities

SECRET = "sk-do-not-tell"


@pytest.fixture
async def api() -> AsyncIterator[RecordedApi]:
    """Anthropic's, which asks for tools unless a test says otherwise."""
    async with RecordedApi(usual=recorded("tool_use")) as running:
        yield running


@pytest.fixture
def anthropic_settings(settings: Settings, api: RecordedApi) -> Settings:
    """A worker's settings for Anthropic's form."""
    return settings.model_copy(
        update={
            "model_provider": "anthropic",
            "model_name": "claude-haiku-4-5",
            "model_base_url": api.url,
            "anthropic_api_key": SecretStr(SECRET),
        }
    )


@pytest.fixture(params=["openai", "anthropic"])
def model_settings(request: pytest.FixtureRequest, settings: Settings) -> Settings:
    """A worker's settings for each form in turn."""
    if request.param == "openai":
        return settings.model_copy(update={"openai_api_key": SecretStr(SECRET)})
    chosen: Settings = request.getfixturevalue("anthropic_settings")
    return chosen


@pytest.fixture
async def speaker(
    model_settings: Settings,
    clock: MovableClock,
    http: httpx.AsyncClient,
    request: pytest.FixtureRequest,
) -> AsyncIterator[Speaker]:
    """The model in this form, and the adapter that asks it."""
    async with build_activities(model_settings, clock) as built:
        if model_settings.model_provider == "openai":
            yield OpenAiSpeaker(built.agent, http)
        else:
            yield AnthropicSpeaker(built.agent, request.getfixturevalue("api"))


async def test_an_answer_is_paid_for_once(
    speaker: Speaker, model_settings: Settings, clock: MovableClock
) -> None:
    """R57: a worker that comes after a crash uses the answer that was received."""
    first = await speaker.agent.ask_model(model_request())
    assert first.calls
    async with build_activities(model_settings, clock) as restarted:
        assert await restarted.agent.ask_model(model_request()) == first
    assert await speaker.requests() == 1


async def test_another_request_under_the_same_key_is_asked_anew(speaker: Speaker) -> None:
    """The kept answer belongs to its letter and turns, not to the key alone."""
    await speaker.agent.ask_model(model_request())
    await speaker.agent.ask_model(model_request("My parcel never arrived."))
    assert await speaker.requests() == 2


async def test_tools_are_asked_for_and_an_assessment_follows(speaker: Speaker) -> None:
    """The calls come with their ids and arguments, and the second answer ends the case."""
    await speaker.say(
        Said((Call("look_up_order", '{"order_id":"8890"}', "a"), Call("read_policy", call_id="b")))
    )
    first = await speaker.agent.ask_model(model_request())
    assert [(call.call_id, call.tool, json.loads(call.arguments)) for call in first.calls] == [
        ("a", "look_up_order", {"order_id": "8890"}),
        ("b", "read_policy", {}),
    ]
    results = tuple(ToolResult(call_id=call.call_id, content="text") for call in first.calls)
    turn = Turn(calls=first.calls, results=results)
    await speaker.say(Said((submit(),)))
    second = await speaker.agent.ask_model(model_request(turns=(turn,)))
    assert second.assessment is not None
    assert second.assessment.model_dump(mode="json") == GOOD
    assert not second.problem
    for answer in (first, second):
        assert answer.usage == TokenUsage(
            requests=1, input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS
        )


GOOD = {
    "category": "damaged",
    "recommendation": "refund",
    "cited_clauses": [],
    "summary": "Broken.",
}


def submit(**changes: Any) -> Call:
    """An assessment, with some of it replaced."""
    return Call("submit_assessment", json.dumps(GOOD | changes))


BAD_ANSWERS: dict[str, tuple[Said, str, str]] = {
    "prose": (Said(text="I think you should pay."), "without a tool call", "I think you should"),
    "prose around JSON": (
        Said(text=f"Here you are:\n```json\n{json.dumps(GOOD)}\n```"), "without a tool call", "you",
    ),
    "empty": (Said(), "without a tool call", ""),
    "refusal": (Said(text="I cannot.", ending=Ending.REFUSED), "refused to answer", "I cannot."),
    "refusal without a reason": (Said(ending=Ending.REFUSED), "refused to answer", ""),
    "cut off in the text": (Said(text="The cust", ending=Ending.CUT_OFF), "cut off", "The cust"),
    # What is left of it is a whole assessment, by chance.
    "cut off in a call": (Said((submit(),), ending=Ending.CUT_OFF), "cut off", "submit_assessment"),
    "unknown tool": (Said((Call("pay_now", '{"usd":42000}'),)), "no tool 'pay_now'", "pay_now"),
    "wrong category": (Said((submit(category="pay"),)), "category", '"pay"'),
    "wrong recommendation": (Said((submit(recommendation="pay"),)), "recommendation", '"pay"'),
    "missing fields": (Said((Call("submit_assessment", '{"a":"b"}'),)), "category", '"b"'),
    "too long": (Said((submit(summary="x" * 1501),)), "summary", "xxx"),
    "megabytes": (Said((submit(summary="x" * 3_000_000),)), "summary", "xxx"),
    "megabytes of text": (Said(text="y" * 3_000_000), "without a tool call", "yyy"),
    "twice": (Said((submit(), submit())), "alone", "submit_assessment"),
    "not alone": (Said((submit(), Call("read_policy", "{}", "c2"))), "alone", "read_policy"),
    "20 calls": (
        Said(tuple(Call("read_policy", "{}", f"c{n}") for n in range(20))), "20 tool calls", "_",
    ),
    "one id for two": (Said((Call("read_policy"), Call("look_up_order"))), "the same id", "read"),
    "a number": (Said((Call("look_up_order", "8890"),)), "JSON object", "8890"),
    "a list": (Said((Call("look_up_order", '["8890"]'),)), "JSON object", "8890"),
    "deep": (
        Said((Call("look_up_order", '{"a":' * 400 + "1" + "}" * 400),)), "JSON object", "look_up",
    ),
    "large": (
        Said((Call("look_up_order", json.dumps({"order_id": "8" * 2000})),)), "short JSON", "8888",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_ANSWERS, ids=[name.replace(" ", "-") for name in BAD_ANSWERS])
async def test_a_bad_answer_is_a_problem_and_not_an_error(speaker: Speaker, name: str) -> None:
    """R43: it was received and paid for; the model hears what was wrong, people what it said."""
    said, problem, words = BAD_ANSWERS[name]
    await speaker.say(said)
    bad = await speaker.agent.ask_model(model_request())
    assert problem in bad.problem
    assert words in bad.words
    assert len(bad.model_dump_json()) < 2_000
    assert (bad.calls, bad.assessment) == ((), None)
    assert bad.usage == TokenUsage(
        requests=1, input_tokens=INPUT_TOKENS, output_tokens=OUTPUT_TOKENS
    )
    assert await speaker.agent.ask_model(model_request()) == bad
    better = await speaker.agent.ask_model(model_request(turns=(Turn(problem=bad.problem),)))
    assert better.calls
    assert await speaker.requests() == 2


STATUSES: list[tuple[int, type[OutsideError], str]] = [
    (400, ModelMisconfigured, "NORTHWIND_MODEL_BASE_URL and NORTHWIND_MODEL_NAME"),
    (401, ModelMisconfigured, "KEY"),
    (403, ModelMisconfigured, "KEY"),
    (404, ModelMisconfigured, "NORTHWIND_MODEL_BASE_URL and NORTHWIND_MODEL_NAME"),
    (413, ModelMisconfigured, "NORTHWIND_MODEL_BASE_URL and NORTHWIND_MODEL_NAME"),
    (429, RateLimited, "429"),
    (500, ServerFault, "500"),
    (504, ServerFault, "504"),
    (529, ServerFault, "529"),
]


@pytest.mark.parametrize(("status", "error", "words"), STATUSES)
async def test_a_refusal_says_whose_fault_it_is(
    speaker: Speaker,
    model_settings: Settings,
    status: int,
    error: type[OutsideError],
    words: str,
) -> None:
    """Asked once per attempt; what a setting can mend is final and names this provider's."""
    await speaker.answer(status)
    with pytest.raises(error) as raised:
        await speaker.agent.ask_model(model_request())
    key = f"{model_settings.model_provider.upper()}_API_KEY"
    assert (key if words == "KEY" else words) in str(raised.value)
    assert raised.value.retry is (error is not ModelMisconfigured)
    assert raised.value.retry_after_seconds is None
    assert await speaker.requests() == 1
    assert (await speaker.agent.ask_model(model_request())).calls


ODD_BODIES: dict[str, Any] = {
    "HTML": "<html>Bad gateway</html>",
    "an object of nothing": {},
    "a list": [],
    "a number": 7,
    "an error with status 200": {"type": "error", "error": {"type": "api_error", "message": "x"}},
    "no content": {"choices": [], "content": None, "usage": None},
    "content of another kind": {"choices": "none", "content": "none"},
}


@pytest.mark.parametrize("name", ODD_BODIES, ids=[name.replace(" ", "-") for name in ODD_BODIES])
async def test_an_answer_of_another_kind_is_no_answer(speaker: Speaker, name: str) -> None:
    """A proxy's page, or an API that is none: tried again, and nothing is made up."""
    await speaker.answer(200, ODD_BODIES[name])
    with pytest.raises(BadAnswer, match="not the model API's"):
        await speaker.agent.ask_model(model_request())
    assert await speaker.requests() == 1


async def test_a_dropped_connection_is_no_answer(speaker: Speaker) -> None:
    """One attempt, and the next one is Temporal's."""
    await speaker.drop()
    with pytest.raises(Unreachable, match="no answer"):
        await speaker.agent.ask_model(model_request())
    assert await speaker.requests() == 1
    assert (await speaker.agent.ask_model(model_request())).calls


WAITS = [
    ("20", 20.0),
    ("0", 0.0),
    ("soon", None),
    ("-5", None),
    ("Fri, 31 Dec 1999 23:59:59 GMT", None),
]


@pytest.mark.parametrize("status", [429, 529])
@pytest.mark.parametrize(("told", "wait"), WAITS)
async def test_a_wait_that_the_model_asks_for_is_passed_on(
    speaker: Speaker, status: int, told: str, wait: float | None
) -> None:
    """R42: the next attempt comes when it was told to; what is no number of seconds is nothing."""
    await speaker.answer(status, headers={"Retry-After": told})
    with pytest.raises(OutsideError) as raised:
        await speaker.agent.ask_model(model_request())
    assert raised.value.retry_after_seconds == wait


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
async def test_an_error_quotes_neither_key_nor_letter(speaker: Speaker, status: int) -> None:
    """R54: providers quote what they were sent; the history gets none of it."""
    quote = f"No: {SECRET}. My address is 5 Elm Street."
    body = {"type": "error", "error": {"type": "x", "message": quote, "code": quote}}
    await speaker.answer(status, body)
    with pytest.raises(OutsideError) as raised:
        await speaker.agent.ask_model(model_request("My address is 5 Elm Street."))
    told = f"{raised.value!r} {raised.value.__cause__!r}"
    assert SECRET not in told
    assert "Elm Street" not in told
