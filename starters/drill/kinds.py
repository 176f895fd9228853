"""The kinds of things that go wrong in a plan, in words: what a report counts."""

from starters.drill.hostile import ANSWERS, LETTERS
from starters.drill.plan import Fault, Plan, Process, Step
from starters.drill.rows import system_of

NOTHING = "nothing goes wrong"
_FLOOD = 10
_STEPS = {
    "hand_refund": "hand refund",
    "lose_right": "right lost",
    "pass_time": "time passes",
    "forget_keys": "payments: keys forgotten",
    "reset": "reset",
    "terminate": "terminated, started again",
    "dispute": "dispute",
    "join": "second worker joins",
    "deploy": "new code deployed",
}


def kinds(plan: Plan) -> tuple[str, ...]:
    """Each kind once, in the order of the plan; the people's decision is always one."""
    found = [f"decision: {plan.decision.value}"]
    found += [f"letter: {name}" for name, letter in LETTERS.items() if letter == plan.letter]
    for step in plan.steps:
        found += _of_step(step)
    if sum(step.do == "send" for step in plan.steps) >= _FLOOD:
        found.append("message: a flood")
    found += [_of_fault(fault) for fault in plan.faults]
    if plan.settles:
        found.append(f"refund: {plan.first_status}, then {plan.settles}")
    if plan.fails_late:
        found.append("refund: fails late")
    return tuple(dict.fromkeys(found))


def _of_step(step: Step) -> list[str]:
    if step.do == "send":
        return [f"message: {step.message.value if step.message else ''}"]
    if step.do not in ("kill", "stop", "cut"):
        return [_STEPS[step.do]]
    found = [f"{step.do}: {process.value}" for process in Process if process in step.who]
    if len(step.who) > 1:
        found.append(f"{step.do}: {'all' if len(step.who) == len(Process) else 'two'} at once")
    return found


def _of_fault(fault: Fault) -> str:
    system = system_of(fault.operation)
    if fault.operation == "chat" and fault.status == 200:
        said = next((name for name, body in ANSWERS.items() if body == fault.body), "something")
        return f"model says: {said}"
    if fault.what == "status":
        what = f"{'stored ' if fault.stored else ''}{fault.status}"
    else:
        what = fault.what.replace("_", " ")
    return f"{system}: {what}"
