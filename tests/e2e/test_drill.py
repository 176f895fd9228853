"""The drill as a user runs it: green on this code, red where a promise is broken."""

import json
from pathlib import Path
from xml.etree import ElementTree

from starters.drill.draw import draw
from starters.drill.plan import Plan
from starters.drill.report import compact
from starters.drill.results import FINDINGS, Result
from tests.e2e.support import refund
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
