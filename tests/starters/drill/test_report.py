"""What a drill tells at its end: to people, to scripts, and to continuous integration."""

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from domain.models import Outcome
from domain.trail import RunStatus
from starters.drill import report
from starters.drill.apart import find_cases
from starters.drill.draw import draw
from starters.drill.evidence import Evidence, Finding
from starters.drill.evidence import as_data as evidence_data
from starters.drill.hostile import LETTERS
from starters.drill.junit import junit, write_junit
from starters.drill.matrix import cells
from starters.drill.plan import AT_WAIT, Plan, Process, Step
from starters.drill.results import Result, as_data, summary

HOSTILE = "two refunds: \x00\x1b[31m ]]> <b>&amp; \ud800 \uffff \u202e😀"


def _result(plan: Plan, *findings: Finding, outcome: Outcome | None = Outcome.REFUNDED) -> Result:
    evidence = Evidence(plan=plan, status=RunStatus(outcome=outcome))
    return Result(plan, evidence_data(evidence), findings, 1.5)


def _drawn(number: int, *findings: Finding) -> Result:
    plan = draw(7, number)
    return Result(plan, evidence_data(Evidence(plan=plan)), findings, 1.5, 7, number)


PLAIN = Plan(name="plain", order_id="d1-000001", total_minor=42_000)
DUPLICATE = Finding("duplicate", "two refunds of $420.00")


def test_what_was_not_found_is_told_as_zero(capsys: pytest.CaptureFixture[str]) -> None:
    """A doubter sees what was looked for, also where nothing was found."""
    report.show([_result(PLAIN), _result(PLAIN)], 30)
    out = capsys.readouterr().out
    said = "2 runs in 30 s, 4 a minute: 0 duplicates, 0 lost, 0 silent, 0 wrong, 0 stuck"
    assert said in out
    assert "FAILED" not in out


def test_a_failure_is_told_with_all_that_runs_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The finding, the seed, the plan, and one line to type."""
    failed = _drawn(3, DUPLICATE)
    report.show([_drawn(1), failed], 60)
    out = capsys.readouterr().out
    assert "duplicate: two refunds of $420.00" in out
    assert "again: refund drill --seed 7 --run 3" in out
    assert "1 duplicates, 0 lost" in out
    (line,) = [line for line in out.splitlines() if line.startswith("  plan: ")]
    assert Plan.model_validate_json(line.removeprefix("  plan: ")) == failed.plan


def test_a_plan_in_one_line_is_the_plan() -> None:
    """A letter with marks that no terminal shows goes through it unchanged."""
    for letter in LETTERS.values():
        plan = PLAIN.model_copy(update={"letter": letter})
        line = report.compact(_result(plan))
        assert (line.isascii(), "\n" in line) == (True, False)
        assert Plan.model_validate_json(line) == plan


def test_hostile_words_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """What a finding quotes is shown as text."""
    report.show([_result(PLAIN, Finding("wrong", "\x1b[2J\u202egone"))], 1)
    out = capsys.readouterr().out
    assert "gone" in out
    assert ("\x1b" in out, "\u202e" in out) == (False, False)


def test_a_saved_plan_is_run_from_its_file() -> None:
    """A plan that no seed draws, such as a shrunk one, is read from a file, spaces and all."""
    assert _drawn(3).again() == "refund drill --seed 7 --run 3"
    assert _drawn(3).again(Path("my plan.json")) == "refund drill --plan 'my plan.json'"
    assert _result(PLAIN).again() == "refund drill --plan FILE"


def test_a_case_of_hosts_apart_is_run_by_its_name() -> None:
    """Its plan alone would not do: the network is cut by the case, and not by the plan."""
    (case,) = find_cases("h-goes-on.refund.r1.before")
    assert case.effect == "refund.r1"
    result = replace(_result(case.plan, DUPLICATE), apart=True)
    assert result.again() == "refund drill --apart h-goes-on.refund.r1.before"


def test_the_matrix_shows_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each effect; a broken cell says how, and one that was not run is empty."""
    by_name = {cell.plan.name: cell.plan for cell in cells()}
    report.show_matrix(
        [
            _result(by_name["worker killed, refund.r1: recorded"], DUPLICATE, DUPLICATE),
            _result(by_name["worker killed, mail.refunded: before"]),
            _result(by_name["company killed, refund.r1: done"]),
            _result(by_name["company killed, wait: wait"]),
        ]
    )
    processes, header, *rows = capsys.readouterr().out.splitlines()[2:]
    assert processes.split() == ["worker", "temporal", "company"]
    starts = [word.start() for word in re.finditer(r"\S+", header)]
    ends = [*starts[1:], None]
    words = [[row[a:b].strip() for a, b in zip(starts, ends, strict=True)] for row in rows]
    assert words == [
        ["refund.r1", "", "", "duplicate", "", "", "", "", "ok", ""],
        ["mail.refunded", "ok", "", "", "", "", "", "", "", ""],
        ["wait", "", "", "", "", "", "", "ok", "", ""],
    ]


def test_scripts_get_all_of_it() -> None:
    """Counts with their zeros, and each run with its plan, as JSON."""
    results = [_drawn(3, DUPLICATE), _result(PLAIN, outcome=None)]
    data = json.loads(json.dumps(as_data(results, 30)))
    assert data["summary"] == summary(results, 30)
    assert data["summary"]["findings"] == {
        "duplicate": 1, "lost": 0, "silent": 0, "wrong": 0, "stuck": 0,
    }  # fmt: skip
    assert (data["summary"]["runs"], data["summary"]["failed"]) == (2, 1)
    assert (data["summary"]["runs_a_minute"], data["summary"]["seeds"]) == (4.0, [7])
    assert data["summary"]["outcomes"] == {"unknown": 2}
    assert Plan.model_validate(data["results"][0]["plan"]) == draw(7, 3)
    assert data["results"][0]["again"] == "refund drill --seed 7 --run 3"


def test_kinds_are_counted_by_runs() -> None:
    """A run with three kills of the worker is one run in which it was killed."""
    step = Step(at=AT_WAIT, do="kill", who=(Process.WORKER,))
    plan = PLAIN.model_copy(update={"steps": (step, step, step)})
    assert summary([_result(plan), _result(PLAIN)], 1)["kinds"] == {
        "decision: approve": 2, "kill: worker": 1,
    }  # fmt: skip


def test_junit_holds_hostile_text() -> None:
    """What XML forbids is shown as an escape; everything else arrives as it is."""
    plan = PLAIN.model_copy(update={"name": HOSTILE, "letter": LETTERS["has controls"]})
    written = junit([_result(plan, Finding("wrong", HOSTILE))], 2)
    suite = ElementTree.fromstring(written)  # noqa: S314 - our own words
    (failure,) = suite.findall("testcase/failure")
    shown = HOSTILE.replace("\x00", "\\x00").replace("\x1b", "\\x1b")
    shown = shown.replace("\ud800", "\\ud800").replace("\uffff", "\\uffff")
    assert failure.get("message") == f"wrong: {shown}"
    assert failure.get("type") == "wrong"
    assert shown in (failure.text or "")
    assert suite.findall("testcase")[0].get("name") == f"d1-000001: {shown}"


def test_junit_counts_runs_and_failures(tmp_path: Path) -> None:
    """One test case for each run, with its time, and the command in each failure."""
    file = tmp_path / "drill.xml"
    write_junit(file, [_drawn(1), _drawn(3, DUPLICATE)], 12.5)
    suite = ElementTree.parse(file).getroot()  # noqa: S314 - our own words
    assert (suite.tag, suite.get("tests"), suite.get("failures")) == ("testsuite", "2", "1")
    assert suite.get("time") == "12.500"
    fine, failed = suite.findall("testcase")
    assert (fine.get("time"), list(fine)) == ("1.500", [])
    text = failed.findtext("failure") or ""
    assert "refund drill --seed 7 --run 3" in text
    assert "duplicate: two refunds of $420.00" in text
