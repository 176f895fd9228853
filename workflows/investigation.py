"""Step 1: let the model look into the case. It helps, it is not needed (promise P5)."""

from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.interfaces import ToolsQuery
    from domain.agent import BAD_ANSWERS_LIMIT, ModelAnswer, ModelRequest, Turn
    from domain.models import Assessment, Policy

from workflows import calls
from workflows.state import RunState


async def investigate(state: RunState, policy: Policy) -> Assessment | None:
    """A bounded loop: one model request per Activity, its tools in between.

    None means that a person decides with the facts that code has: the model was down for longer
    than the policy allows, answered badly three times in a row, or came to no end.
    """
    give_up_at = workflow.now() + timedelta(minutes=policy.model_patience_minutes)
    turns: list[Turn] = []
    bad_answers = 0
    for number in range(1, policy.max_model_turns + 1):
        answer = await _ask(state, number, tuple(turns), give_up_at - workflow.now())
        if answer is None:
            return None
        state.usage = state.usage.plus(answer.usage)
        if answer.assessment is not None:
            said = f"{answer.assessment.category}, {answer.assessment.recommendation}"
            state.note("assessed", f"{said}: {answer.assessment.summary}", who=answer.model)
            return answer.assessment
        bad_answers = bad_answers + 1 if answer.problem else 0
        if answer.problem:
            said = f" It said: {answer.words}" if answer.words else ""
            state.note("bad_answer", f"{answer.problem}{said}", who=answer.model)
        if bad_answers == BAD_ANSWERS_LIMIT:
            break
        turns.append(await _run_tools(state, answer))
    state.note("no_assessment", "the model came to no usable answer")
    return None


async def _ask(
    state: RunState, number: int, turns: tuple[Turn, ...], patience: timedelta
) -> ModelAnswer | None:
    if patience <= timedelta(0):
        state.note("no_assessment", "the model took longer than the policy allows")
        return None
    request = ModelRequest(
        environment=state.request.environment,
        key=state.key(f"model.{number}"),
        order_id=state.request.order_id,
        letter=state.request.message,
        turns=turns,
    )
    return await calls.ask_model(
        request,
        f"Ask the model, turn {number}",
        patience,
        lambda why: state.note("no_assessment", why),
    )


async def _run_tools(state: RunState, answer: ModelAnswer) -> Turn:
    if not answer.calls:
        return Turn(problem=answer.problem)
    query = ToolsQuery(
        environment=state.request.environment,
        order_id=state.request.order_id,
        calls=answer.calls,
    )
    results = await calls.use_tools(query)
    asked = [
        call.tool if call.fits(state.request.order_id) else f"{call.tool} {call.arguments}"
        for call in answer.calls
    ]
    state.note("looked_up", ", ".join(asked), who=answer.model)
    return Turn(calls=answer.calls, results=results, problem=answer.problem)
