"""The command as a user runs it: real processes, real ports, Ctrl-C."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from tests import documents
from tests.e2e.support import PATIENCE, begin, refund, running
from tests.world import LETTER, temporal_program


async def test_the_demo_survives_its_kills(tmp_path: Path) -> None:
    """Right books after SIGKILL to all, nothing is left, and the README tells what is printed."""
    code, out, err = await refund(tmp_path, "demo", "--temporal", temporal_program())
    assert code == 0, out + err
    assert "SIGKILL to temporal" in out
    assert "The books are right" in out
    (story,) = documents.blocks(documents.README, "text")
    assert documents.untold(out, story) == []
    assert not any(tmp_path.iterdir())  # noqa: ASYNC240 - nothing else runs in this test


async def test_up_keeps_its_data_and_ends_what_it_started(tmp_path: Path) -> None:
    """Ctrl-C ends the three processes; the next `up` on the folder shows the same refunds."""
    async with running(tmp_path) as first:
        code, out, err = await refund(
            tmp_path, "start", "--order", "8891", "--message", LETTER, "--wait", "--json"
        )
        assert code == 0, err
        assert json.loads(out)["status"]["outcome"] == "refunded"
        code, _, err = await refund(tmp_path, "doctor")
        assert code == 0, err
        code, _, err = await refund(tmp_path, "up", "--temporal", temporal_program())
        assert (code, len(err.splitlines())) == (7, 1)
        assert str(first.pid) in err
    assert first.returncode == 0
    links = json.loads((tmp_path / ".northwind" / "connection.json").read_text())
    code, _, err = await refund(tmp_path, "list")
    assert (code, "refund up" in err) == (5, True)
    async with running(tmp_path):
        _, out, _ = await refund(tmp_path, "list", "--outcome", "refunded", "--json")
        assert [row["order_id"] for row in json.loads(out)] == ["8891"]
    assert json.loads((tmp_path / ".northwind" / "connection.json").read_text()) == links


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_demo_leaves_no_process(
    tmp_path: Path, number: signal.Signals
) -> None:
    """Ctrl-C and SIGTERM in the middle of the demo: everything ends, and it says where data is."""
    process = await begin(tmp_path, "demo", "--temporal", temporal_program())
    assert process.stdout is not None
    pids: list[int] = []
    async with asyncio.timeout(PATIENCE):
        while len(pids) < 2:
            line = (await process.stdout.readline()).decode()
            if "(process " in line:
                pids.append(int(line.rpartition("(process ")[2].strip(" )\n")))
        process.send_signal(number)
        _, err = await process.communicate()
    assert process.returncode == 130
    assert str(tmp_path) in err.decode()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
