"""Whatever a letter says, it is data for the model, and every tool reads the run's own order."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from activities.interfaces import ToolsQuery
from activities.model import Agent
from activities.model_prompt import SYSTEM_PROMPT, TOOL_NAMES, first_words
from domain.agent import ToolCall
from tests.activities.recorded_api import Answer, RecordedApi, recorded
from tests.activities.speakers import Call, Said, chat_completion
from tests.activities.support import MovableClock, model_request
from tests.letters import LETTERS
from workers.settings import Settings
from workers.wiring import Activities, build_activities


def usual(provider: str) -> Answer:
    """What a model of this form says to everything."""
    if provider == "anthropic":
        return recorded("tool_use")
    return Answer(200, chat_completion(Said((Call("read_policy"),))), {})


def told(provider: str, body: Any) -> tuple[str, str]:
    """What a request says as the system, and what as the user, in the one message of theirs."""
    if provider == "anthropic":
        system, [message] = body["system"], body["messages"]
    else:
        first, message = body["messages"]
        assert first["role"] in ("system", "developer")
        system = first["content"]
    assert message["role"] == "user"
    return _text(system), _text(message["content"])


def _text(content: Any) -> str:
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    # The client's library breaks the marks by which some models tell who speaks.
    return text.replace("<\u200d|", "<|")


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    """Each form in turn."""
    return str(request.param)


@pytest.fixture
async def api(provider: str) -> AsyncIterator[RecordedApi]:
    """A server that keeps what it was sent."""
    async with RecordedApi(usual(provider)) as running:
        yield running


@pytest.fixture
async def agent(
    provider: str, settings: Settings, api: RecordedApi, clock: MovableClock
) -> AsyncIterator[Agent]:
    """The adapter, with settings for that server."""
    chosen = {
        "model_provider": provider,
        "model_name": "a-model",
        "model_base_url": api.url,
        f"{provider}_api_key": SecretStr("a key"),
    }
    async with build_activities(settings.model_copy(update=chosen), clock) as built:
        yield built.agent


async def test_a_letter_is_data_on_the_wire(
    provider: str, agent: Agent, api: RecordedApi, subtests: pytest.Subtests
) -> None:
    """R44: whole and unchanged between its tags, in one message; all else is ours."""
    for name, letter in LETTERS.items():
        with subtests.test(name=name):
            api.received.clear()
            await agent.ask_model(model_request(letter))
            [sent] = api.received
            system, user = told(provider, sent.body)
            assert system == SYSTEM_PROMPT
            assert user == first_words("8890", letter)
            opening, closing = user.splitlines()[3], user.splitlines()[-1]
            assert user.count(opening) == user.count(closing) == 1
            assert user.partition(opening)[2].rpartition(closing)[0] == f"\n{letter}\n"
            offered = [tool.get("function", tool)["name"] for tool in sent.body["tools"]]
            assert set(offered) == TOOL_NAMES


@pytest.mark.parametrize("name", LETTERS)
async def test_a_letters_words_in_a_call_read_nothing(activities: Activities, name: str) -> None:
    """R45: a model that believes a letter asks for what it names, and is told of its own order."""
    arguments = json.dumps({"order_id": LETTERS[name][:200]}, ensure_ascii=False)
    calls = tuple(
        ToolCall(call_id=tool, tool=tool, arguments=arguments)
        for tool in ("look_up_order", "past_refunds", "read_policy")
    )
    query = ToolsQuery(environment="local", order_id="8890", calls=calls)
    for result in (await activities.agent.use_tools(query)).results:
        assert result.content == "Only order 8890 can be read in this case."
