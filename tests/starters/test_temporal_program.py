"""Signals that are typed by hand: a real shell, the real `temporal` program, JSON from a person."""

import asyncio
import base64
import json
import shlex
import sys
from pathlib import Path

import pytest

from domain.models import Outcome
from domain.statements import SignedStatement
from domain.trail import Refusal
from tests.signing import GRACE, MARIA, TOM
from tests.starters.conftest import Typed
from tests.world import PATIENCE, Run, World, check_history, event_types, temporal_program

ROOT = Path(__file__).parents[2]
REFUND = (
    f"PYTHONPATH={shlex.quote(str(ROOT))} {shlex.quote(sys.executable)} "
    "-c 'from starters.cli import main; main()'"
)
BOM = "\ufeff"
ELSEWHERE = "--input-meta encoding=binary/plain --input-base64"
"""The program checks that what it is given is JSON, but for other encodings."""


async def shell(line: str) -> tuple[int, str]:
    """Type a line into a shell; the exit code of its last command, and what it printed."""
    process = await asyncio.create_subprocess_shell(
        line, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    async with asyncio.timeout(PATIENCE):
        printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()


def signal(run: Run, options: str, name: str = "decide") -> str:
    """The line that sends a signal to a run."""
    address = run.world.client.service_client.config.target_host
    program = shlex.quote(temporal_program())
    return (
        f"{program} workflow signal --address {address} --workflow-id {run.handle.id} "
        f"--name {name} {options}"
    )


def as_json(statement: SignedStatement) -> str:
    """The argument of a signal as a person has it before them."""
    return json.dumps({"token": statement.token})


async def test_what_is_typed_wrong_has_its_reason_and_what_is_typed_right_counts(
    typed: Typed, world: World
) -> None:
    """R3, R4: exit code 0 for all of them, a reason for each wrong one in `refund show --json`."""
    run = await world.start()
    good = as_json(world.signer.decision(await run.waiting()))
    text, token = shlex.quote(good), shlex.quote(json.dumps(json.loads(good)["token"]))
    form = 'not of the form {"token": "<signed statement>"}'
    wrong = {
        "--input '\"approve\"'": form,
        f"--input {token}": form,
        f"{ELSEWHERE} --input {in_base64(BOM + good)}": form,
        f"{ELSEWHERE} --input {in_base64(good[:-9])}": form,
        "": "one argument is needed, 0 came",
        f"--input {text} --input {text}": "one argument is needed, 2 came",
    }
    for options in wrong:
        assert (await shell(signal(run, options)))[0] == 0
    await run.until(lambda s: s.refused == {Refusal.MALFORMED: len(wrong)})
    shown = (await typed("show", "8890", "--json")).data["status"]
    details = [entry["detail"] for entry in shown["trail"] if entry["refusal"]]
    assert details == [f"decide: {reason}" for reason in wrong.values()]

    assert (await shell(signal(run, f"--input {text}")))[0] == 0
    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds() == [(42000, "succeeded")]
    await check_history(run)


async def test_a_file_and_another_encoding_count_as_well(world: World, tmp_path: Path) -> None:
    """The bytes count, whatever lies around them: lines, base64, another encoding's name."""
    run = await world.start("8892")
    proposal = await run.waiting()
    by_maria, by_grace = (world.signer.decision(proposal, by=by) for by in (MARIA, GRACE))
    saved = json.dumps({"token": by_maria.token}, indent=2)
    (tmp_path / "decision.json").write_bytes(f"\n{saved}\r\n\n".encode())
    assert (await shell(signal(run, "--input-file decision.json")))[0] == 0
    options = f"{ELSEWHERE} --input {in_base64(as_json(by_grace))}"
    assert (await shell(signal(run, options)))[0] == 0

    assert (await run.result()).outcome is Outcome.REFUNDED
    assert await world.refunds("8892") == [(185_000, "succeeded")]
    await check_history(run)


@pytest.mark.parametrize("content", [f"{BOM}{{}}", "no JSON", ""], ids=["mark", "text", "empty"])
async def test_what_the_program_refuses_never_reaches_the_run(
    world: World, tmp_path: Path, content: str
) -> None:
    """A file with a byte order mark, or without JSON: exit code 1, and nothing is signalled."""
    run = await world.start()
    await run.waiting()
    (tmp_path / "decision.json").write_text(content)
    code, printed = await shell(signal(run, "--input-file decision.json"))
    assert (code, "not valid JSON" in printed) == (1, True)
    assert event_types(await run.history())["WORKFLOW_EXECUTION_SIGNALED"] == 0


async def test_a_printed_approval_can_be_piped(world: World) -> None:
    """`refund approve --print` into `temporal workflow signal`: the approval counts, once."""
    run = await world.start()
    await run.waiting()
    sending = signal(run, "--input-file /dev/stdin")
    code, printed = await shell(f"{REFUND} approve 8890 --as {TOM} --print | {sending}")
    assert code == 0, printed
    ended = await run.result()
    assert [entry.who for entry in ended.trail if entry.what == "approved"] == [TOM]
    assert await world.refunds() == [(42000, "succeeded")]


def in_base64(text: str) -> str:
    """Text as `--input-base64` takes it."""
    return base64.b64encode(text.encode()).decode()
