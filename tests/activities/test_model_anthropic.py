"""What is Anthropic's own: how a request looks on the wire, and answers that only it gives."""

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from activities.model import Agent
from activities.model_client import ANSWER_TOKENS
from activities.model_prompt import SYSTEM_PROMPT, TOOL_NAMES
from domain.agent import ToolResult, Turn
from domain.errors import ModelMisconfigured
from tests.activities.recorded_api import RecordedApi, recorded
from tests.activities.support import LETTER, MovableClock, model_request
from workers.settings import Settings
from workers.wiring import build_activities

SECRET = "sk-ant-s3cret"


@pytest.fixture
async def api() -> AsyncIterator[RecordedApi]:
    """A server that asks for tools unless a test says otherwise."""
    async with RecordedApi(usual=recorded("tool_use")) as running:
        yield running


@pytest.fixture
async def agent(settings: Settings, api: RecordedApi, clock: MovableClock) -> AsyncIterator[Agent]:
    """The adapter, with settings for that server."""
    chosen = {
        "model_provider": "anthropic",
        "model_name": "claude-haiku-4-5",
        "model_base_url": api.url,
        "anthropic_api_key": SecretStr(SECRET),
    }
    async with build_activities(settings.model_copy(update=chosen), clock) as built:
        yield built.agent


async def test_a_request_is_one_of_the_messages_api(agent: Agent, api: RecordedApi) -> None:
    """Path, key, bound and tools as the documentation has them; the key stands in one header."""
    await agent.ask_model(model_request())
    [sent] = api.received
    assert sent.path.partition("?")[0] == "/v1/messages"
    assert sent.headers["anthropic-version"]
    assert [value for value in sent.headers.values() if SECRET in value] in (
        [SECRET],
        [f"Bearer {SECRET}"],
    )
    assert SECRET not in f"{sent.path} {sent.body}"
    assert (sent.body["model"], sent.body["max_tokens"]) == ("claude-haiku-4-5", ANSWER_TOKENS)
    assert {tool["name"] for tool in sent.body["tools"]} == TOOL_NAMES
    assert sent.body["tool_choice"] == {"type": "any"}
    assert not sent.body.get("stream")
    assert SYSTEM_PROMPT in f"{sent.body['system']}".replace("\\n", "\n").replace("\\'", "'")
    [message] = sent.body["messages"]
    assert message["role"] == "user"
    assert LETTER in f"{message['content']}"
    assert LETTER not in f"{sent.body['system']}"


async def test_results_go_back_under_the_ids_of_their_calls(agent: Agent, api: RecordedApi) -> None:
    """The next turn repeats the calls and answers each of them; then the model assesses."""
    first = await agent.ask_model(model_request())
    results = tuple(ToolResult(call_id=call.call_id, content=call.tool) for call in first.calls)
    api.put(recorded("tool_use_submit"))
    turn = Turn(calls=first.calls, results=results)
    second = await agent.ask_model(model_request(turns=(turn,)))
    assert second.assessment is not None
    assert second.assessment.cited_clauses == ("§2",)
    _, assistant, user = api.received[1].body["messages"]
    assert (assistant["role"], user["role"]) == ("assistant", "user")
    asked = {block["id"]: block["name"] for block in assistant["content"]}
    told = {block["tool_use_id"]: f"{block['content']}" for block in user["content"]}
    assert asked.keys() == told.keys()
    assert len(asked) == 2
    assert all(name in told[call_id] for call_id, name in asked.items())


async def test_after_a_bad_answer_the_problem_is_told(agent: Agent, api: RecordedApi) -> None:
    """The letter comes first as ever, and the problem is the last thing that is said."""
    api.put(recorded("end_turn"))
    bad = await agent.ask_model(model_request())
    await agent.ask_model(model_request(turns=(Turn(problem=bad.problem),)))
    messages = api.received[1].body["messages"]
    assert all(message["role"] == "user" for message in messages)
    assert LETTER in f"{messages[0]['content']}"
    assert bad.problem in f"{messages[-1]['content']}"


async def test_tokens_of_the_cache_count(agent: Agent) -> None:
    """They are paid for: two fresh ones, one written, four read."""
    usage = (await agent.ask_model(model_request())).usage
    assert (usage.input_tokens, usage.output_tokens) == (7, 3)


@pytest.mark.parametrize("name", ["refusal", "empty", "end_turn", "max_tokens"])
async def test_an_end_without_a_whole_call_is_a_bad_answer(
    agent: Agent, api: RecordedApi, name: str
) -> None:
    """Every documented reason to stop leads on."""
    api.put(recorded(name))
    assert (await agent.ask_model(model_request())).problem


async def test_half_a_character_harms_nobody(agent: Agent, api: RecordedApi) -> None:
    """JSON can carry what no text can: the answer is kept without it."""
    said = recorded("end_turn")
    said.body["content"][0]["text"] = "\ud83d pay"
    api.put(said)
    assert (await agent.ask_model(model_request())).words == "? pay"


async def test_thoughts_are_passed_over(agent: Agent, api: RecordedApi) -> None:
    """A model that thinks although it was asked not to is understood all the same."""
    api.put(recorded("thinking"))
    assert [call.tool for call in (await agent.ask_model(model_request())).calls] == ["read_policy"]


async def test_an_account_without_credit_is_told_as_such(agent: Agent, api: RecordedApi) -> None:
    """It comes as a 400, and neither name nor address of the model would mend it."""
    api.put(recorded("error_400_credit"))
    with pytest.raises(ModelMisconfigured, match=r"no credit.* ANTHROPIC_API_KEY"):
        await agent.ask_model(model_request())
