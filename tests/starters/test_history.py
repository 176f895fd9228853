"""`refund history --all`: many runs, each whole and in a file of its own."""

import json
from pathlib import Path

from starters.history import file_name
from tests.starters.conftest import Typed
from tests.world import World

START = ("start", "--order", "8891", "--message", "It broke.", "--wait", "--json")


async def saved_runs(typed: Typed, world: World, *run_ids: str) -> None:
    """Wait until the server lists these runs: it writes its list after the runs themselves."""

    async def are_listed() -> bool:
        rows = (await typed("list", "--order", "8891", "--json")).data
        return set(run_ids) <= {row["run_id"] for row in rows}

    await world.until(are_listed)


def files_of(folder: Path, run_id: str) -> list[Path]:
    """The files of a run in a folder, half-written ones too."""
    return [path for path in folder.iterdir() if run_id in path.name]


async def test_each_run_of_an_order_is_saved(typed: Typed, world: World, tmp_path: Path) -> None:
    """A later run of an order does not overwrite an earlier one, and what is saved replays."""
    first, second = (await typed(*START)).data, (await typed(*START)).data
    await saved_runs(typed, world, first["run_id"], second["run_id"])
    folder = tmp_path / "all"
    either = f'RunId = "{first["run_id"]}" OR RunId = "{second["run_id"]}"'
    done = await typed("history", "--all", "--query", either, "-o", str(folder))
    assert done.code == 0, done.err
    for run in (first, second):
        file = folder / file_name("refund-order-8891", run["run_id"])
        assert run["run_id"] in file.read_text()
    assert f"2 histories saved in {folder}" in done.out
    assert (await typed("replay", str(folder))).code == 0


async def test_a_file_that_is_there_is_replaced_whole(
    typed: Typed, world: World, tmp_path: Path
) -> None:
    """Whoever has the old one open goes on reading it whole; nothing half-written stays."""
    run = (await typed(*START)).data["run_id"]
    await saved_runs(typed, world, run)
    query = f'RunId = "{run}"'
    file = tmp_path / file_name("refund-order-8891", run)
    file.write_text("old")
    with file.open() as reader:
        done = await typed("history", "--all", "--query", query, "-o", str(tmp_path))
        assert reader.read() == "old"
    assert done.code == 0, done.err
    assert "1 history saved" in done.out
    assert json.loads(file.read_text())["events"]
    assert files_of(tmp_path, run) == [file]


async def test_one_that_fails_stops_no_other(typed: Typed, world: World, tmp_path: Path) -> None:
    """It is named with its reason, the others are saved, and the exit code is its own."""
    first, second = (await typed(*START)).data, (await typed(*START)).data
    await saved_runs(typed, world, first["run_id"], second["run_id"])
    either = f'RunId = "{first["run_id"]}" OR RunId = "{second["run_id"]}"'
    in_the_way = tmp_path / file_name("refund-order-8891", first["run_id"])
    in_the_way.mkdir()
    done = await typed("history", "--all", "--query", either, "-o", str(tmp_path))
    assert done.code == 2
    assert "1 history saved" in done.out
    assert f"not saved: refund-order-8891 {first['run_id']}" in done.err
    assert "1 history could not be saved" in done.err
    assert (tmp_path / file_name("refund-order-8891", second["run_id"])).is_file()


async def test_nothing_to_save_is_told(typed: Typed, world: World, tmp_path: Path) -> None:
    """A query that fits no run, and one that the server does not understand; no folder is made."""
    folder = tmp_path / "all"
    for query, code, says in (
        ('WorkflowId = "no-such-run"', 4, "no run fits"),
        ("WorkflowId is what", 2, "Temporal refused the request"),
    ):
        done = await typed("history", "--all", "--query", query, "-o", str(folder))
        assert (done.code, says in done.err, folder.exists()) == (code, True, False)


def test_no_workflow_id_leads_out_of_the_folder() -> None:
    """Whoever may start runs may give them any id."""
    name = file_name("../../etc/passwd", "1")
    assert "/" not in name
    assert file_name("a/b", "1") != file_name("a%2Fb", "1")
