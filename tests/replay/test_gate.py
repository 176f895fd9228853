"""The gate can fail: on copies of the code, each with a change that would break a refund."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.replay.gate import differences
from tests.trees import ROOT, Change, copy_with
from tests.world import PATIENCE_WITH_A_RUN

STAGES = ("waiting", "decided", "refunded", "closed")
ENTER_CLOSED = "        state.enter(Stage.CLOSED)\n"
DONE = "        return state.status(workflow.now())\n\n    @workflow.signal"
RECHECK = "        finding = await recheck_now(state)\n        # A withdrawal"
UNTOLD = "outcome=self.closed.outcome if self.closed else None"


async def gate_in(tree: Path, *names: str) -> dict[str, list[str]]:
    """What the gate says of the newest release's histories with the code of a copy."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.replay", *names),
        cwd=tree,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tree), str(ROOT)))},
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE_WITH_A_RUN):
        out, _ = await process.communicate()
    found: dict[str, list[str]] = json.loads(out)
    newest = max(name.partition("/")[0] for name in found)
    return {
        name.rpartition(".")[2]: wrong
        for name, wrong in found.items()
        if name.startswith(f"{newest}/")
    }


# A change, the stages that miss it, and what is said of the first one that does not.
CHANGES: dict[str, tuple[Change, tuple[str, ...], str]] = {
    "a step after the wait": (
        Change(
            "workflows/refund.py",
            ENTER_CLOSED,
            f"        await workflow.sleep(1)\n{ENTER_CLOSED}",
        ),
        ("waiting", "decided", "refunded"),
        "the code asks for timer of 0:00:01",
    ),
    "a step before the money": (
        Change(
            "workflows/refund.py",
            RECHECK,
            f"        await workflow.sleep(1)\n{RECHECK}",
        ),
        ("waiting",),
        "the code asks for timer of 0:00:01",
    ),
    "an exception in the last task": (
        Change("workflows/refund.py", DONE, f'        raise KeyError("x")\n{DONE}'),
        ("waiting", "decided", "refunded"),
        "KeyError",
    ),
    "an end that is told otherwise": (
        Change("workflows/state.py", UNTOLD, "outcome=None"),
        ("waiting", "decided", "refunded"),
        "status.outcome is null, it was",
    ),
    "a result that is told otherwise": (
        Change(
            "workflows/refund.py",
            DONE,
            DONE.replace("(workflow.now())", '(workflow.now()).model_copy(update={"round": 0})'),
        ),
        ("waiting", "decided", "refunded"),
        "result.round is 0, it was 1",
    ),
    "another step beside the re-check": (
        Change(
            "workflows/refund.py",
            RECHECK,
            f"        beside = asyncio.create_task(workflow.sleep(1))\n{RECHECK}",
        ),
        ("waiting",),
        "the code asks for timer of 0:00:01",
    ),
    "another converter": (
        Change(
            "workers/sandbox.py",
            "DATA_CONVERTER = pydantic_data_converter\n",
            "from temporalio.converter import DataConverter\n"
            "DATA_CONVERTER = DataConverter.default\n",
        ),
        (),
        "not the pydantic converter",
    ),
}


@pytest.mark.parametrize(("change", "missed_by", "says"), CHANGES.values(), ids=CHANGES)
async def test_a_change_is_caught_at_the_stages_behind_it(
    tmp_path: Path, change: Change, missed_by: tuple[str, ...], says: str
) -> None:
    """P6: a history shows nothing of what lies ahead of it, so each stage is needed."""
    tree = copy_with(tmp_path / "tree", change)
    found = await gate_in(tree, *(f"one_approval.{stage}" for stage in STAGES))
    assert found.keys() == set(STAGES)
    assert tuple(stage for stage in STAGES if not found[stage]) == missed_by
    first = next(stage for stage in STAGES if found[stage])
    assert says in found[first][0]


HARMLESS = {
    "a step behind a patch": (
        '        if workflow.patched("x"):\n            await workflow.sleep(1)\n'
    ),
    "a patch that is deprecated": '        workflow.deprecate_patch("x")\n',
}


@pytest.mark.parametrize("added", HARMLESS.values(), ids=HARMLESS)
async def test_what_breaks_no_run_is_let_through(tmp_path: Path, added: str) -> None:
    """A gate that is red for everything would be switched off: the change before the money again.

    The history that was kept there ends with the task in which the patch is asked for.
    """
    tree = copy_with(tmp_path / "tree", Change("workflows/refund.py", RECHECK, added + RECHECK))
    found = await gate_in(tree, *(f"one_approval.{stage}" for stage in STAGES))
    assert found == {stage: [] for stage in STAGES}


def test_what_is_said_in_addition_is_no_difference() -> None:
    """A release may add fields; what an older one said must still be said."""
    before = {"stage": "closed", "proposal": {"round": 1}, "trail": ["asked", "ended"]}
    now = {**before, "told": True, "proposal": {"round": 1, "note": ""}}
    assert list(differences(before, now, "status")) == []
    assert list(differences(now, before, "status")) == [
        'status.proposal.note is missing, it was ""',
        "status.told is missing, it was true",
    ]
    later = {**before, "trail": ["asked"]}
    (said,) = differences(before, later, "status")
    assert said.startswith("status.trail is")
