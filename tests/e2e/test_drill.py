"""The drill as a user runs it: green on this code, red where a promise is broken."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from starters.drill.draw import draw
from starters.drill.plan import AT_WAIT, Plan, Process, Step
from starters.drill.report import compact
from starters.drill.results import FINDINGS, Result
from tests.e2e.support import refund
from tests.replay.releases import release_1
from tests.trees import ROOT, Change, copy_with
from tests.world import temporal_program


async def drill(folder: Path, *arguments: str, tree: Path = ROOT) -> tuple[int, str, str]:
    """Random runs alone; the seeds of these tests have none that ends a process.

    The folder is for temporary files.
    """
    folder.mkdir()  # noqa: ASYNC240 - nothing else runs in these tests
    alone = ("--no-matrix", "--no-hosts", "--temporal", temporal_program())
    return await refund(folder, "drill", *alone, *arguments, tree=tree)


async def test_a_drill_in_which_all_promises_are_kept(tmp_path: Path) -> None:
    """Exit code 0, no finding of any kind, both files for machines, and nothing is left."""
    report, temporary = tmp_path / "report.xml", tmp_path / "temporary"
    arguments = ("--seed", "3", "--runs", "3", "--no-shrink", "--junit", str(report), "--json")
    code, out, err = await drill(temporary, *arguments)
    assert code == 0, out + err
    summary = json.loads(out)["summary"]
    assert (summary["runs"], summary["failed"], summary["seeds"]) == (3, 0, [3])
    assert summary["findings"] == dict.fromkeys(FINDINGS, 0)
    suite = ElementTree.parse(report).getroot()  # noqa: S314 - the drill's own
    assert (suite.tag, len(suite.findall("testcase"))) == ("testsuite", 3)
    assert suite.findall("testcase/*") == []
    assert list(temporary.iterdir()) == []


async def test_a_drill_in_which_a_promise_is_broken(tmp_path: Path) -> None:
    """Exit code 1, what was broken by which plan, how to run it again, and a smaller plan.

    Here customers hear of a delay where their money was sent; that orders came late is no part of
    it.
    """
    other_mail = Change(
        "workflows/notices.py",
        "Outcome.REFUNDED: MailPurpose.REFUNDED,",
        "Outcome.REFUNDED: MailPurpose.DELAYED,",
    )
    tree = copy_with(tmp_path / "tree", other_mail)
    temporary = tmp_path / "temporary"
    code, out, err = await drill(temporary, "--seed", "385", "--run", "0", tree=tree)
    assert (code, "Traceback" in err) == (1, False), out + err
    assert "silent: refunded, and there is no mail.refunded" in out
    assert "seed: 385, run 0" in out
    assert "again: refund drill --seed 385 --run 0" in out
    assert f"plan: {compact(Result(draw(385, 0), {}, (), 0.0))}" in out
    assert "0 duplicates, 0 lost, 1 silent, 0 wrong, 0 stuck" in out
    smallest = Plan.model_validate_json(out.splitlines()[-1])
    assert (smallest.faults, smallest.steps) == ((), ())
    left = err.partition("Data and logs are left in ")[2].splitlines()[0].split(", ")
    assert sorted(left) == sorted(map(str, temporary.iterdir()))
    assert err.splitlines()[-1] == "refund: 1 of 1 runs failed"


async def drill_from_release_1(folder: Path, total_minor: int, at: str) -> dict[str, Any]:
    """What became of one run that began under release 1, and met this code at a place."""
    deploy = Step(at=at, do="deploy", who=(Process.WORKER,))
    plan = Plan(name="a deploy", order_id="f1-000001", total_minor=total_minor, steps=(deploy,))
    file = folder / "plan.json"
    file.write_text(plan.model_dump_json())
    older = release_1(folder / "release-1")
    arguments = ("--from", str(older), "--plan", str(file), "--json")
    code, out, err = await drill(folder / "temporary", *arguments)
    assert code == 0, out + err
    (result,) = json.loads(out)["results"]
    assert result["again"] == f"refund drill --from {older} --plan FILE"
    # A run that is let go may end before the new workers are up, and before the step is noted.
    came = {f"held at {at}", f"{at}: deploy worker"}
    assert any(did.startswith(tuple(came)) for did in result["did"])
    found: dict[str, Any] = result
    return found


async def test_a_deploy_while_a_run_waits(tmp_path: Path) -> None:
    """P6: it began under release 1, and this code tells the order service of its refund."""
    found = await drill_from_release_1(tmp_path, 42_000, AT_WAIT)
    assert (found["outcome"], len(found["noted"])) == ("refunded", 1)
    assert ["mail.under_review", 1] in found["mails"]


async def test_a_deploy_while_a_run_tells_its_end(tmp_path: Path) -> None:
    """P6: it was past the place where the order service is told now, and is not led back."""
    found = await drill_from_release_1(tmp_path, 3_500, "mail.refunded:before")
    assert (found["outcome"], found["noted"]) == ("refunded", [])
    assert found["mails"] == [["mail.refunded", 1]]


async def test_a_folder_without_a_release_is_refused(tmp_path: Path) -> None:
    """Exit code 2 and one line, before anything has begun."""
    code, _, err = await drill(tmp_path / "temporary", "--from", str(tmp_path))
    words = f"refund: {tmp_path} holds no release: there are no workers and workflows in it"
    assert (code, err.splitlines()) == (2, [words])
