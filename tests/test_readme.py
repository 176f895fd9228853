"""The documents hold: every command runs, every link leads somewhere, every name exists."""

import asyncio
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from domain.outcomes import MISTAKES_OF_THE_REQUESTER, Reason
from starters.commands import app
from tests import documents
from tests.documents import DOCUMENTS, README, ROOT
from tests.e2e.support import PATIENCE, environment, programs, running
from tests.mutants.table import ALL
from workers.settings import Settings

# Commands of the README that its test does not run, each with the reason.
NOT_RUN = {
    "make demo": "tests/e2e/test_command.py plays the demo",
    "make drill": "takes minutes: tests/e2e/test_drill.py runs a small one",
    "make test": "runs this test",
    "make up": "the test has its own `refund up` in the background",
    ". .venv/bin/activate": "sets this shell's PATH, as the test does",
    "export TEMPORAL_ADDRESS=temporal.example:7233 TEMPORAL_NAMESPACE=refunds": "no such server",
    "refund worker": "runs until it is ended: tests/workers/test_process.py does that",
}
ARCHITECTURE = ROOT / "docs" / "architecture.md"
RUNBOOK = ROOT / "docs" / "runbook.md"
# How the refunds of the README's examples end.
ENDS = {
    "8890": "refunded",
    "8891": "refunded",
    "8892": "refunded",
    "8893": "withdrawn",
    "8896": "refunded",
    "8899": "rejected",
}


class Shell:
    """A terminal in a folder, with `refund` and `temporal` on its path."""

    def __init__(self, folder: Path) -> None:
        """Make the two programs callable by their names, wherever they are installed."""
        self.folder = folder
        path = f"{programs(folder / 'bin')}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**environment(folder), "PATH": path}

    async def run(self, line: str) -> str:
        """Run a line as it stands there; what it printed."""
        # `refund up` takes other ports than the usual ones where those are not free.
        links = json.loads((self.folder / ".northwind" / "connection.json").read_text())
        line = line.replace("127.0.0.1:7233", links["temporal"])
        process = await asyncio.create_subprocess_exec(
            *("bash", "-c", line),
            cwd=self.folder,
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(PATIENCE):
            out, err = await process.communicate()
        assert process.returncode == 0, f"{line}\n{out.decode()}{err.decode()}"
        return out.decode()

    async def until(self, order: str, outcome: str, stage: str) -> None:
        """Look at the runs until one is so far: a reader types slower than a test."""
        async with asyncio.timeout(PATIENCE):
            while (outcome, stage) != (await self.ends()).get(order):
                pass

    async def ends(self) -> dict[str, tuple[str, str]]:
        """How each run ended, and its stage, by order."""
        rows = json.loads(await self.run("refund list --json"))
        return {row["order_id"]: (row["outcome"], row["stage"]) for row in rows}


@pytest.mark.timeout(2 * PATIENCE)
async def test_every_command_of_the_readme_works(tmp_path: Path) -> None:
    """Typed one after the other beside one `refund up`, all succeed and all refunds end so."""
    lines = documents.commands(README)
    assert NOT_RUN.keys() <= set(lines)
    shell = Shell(tmp_path)
    async with running(tmp_path):
        for line in lines:
            if line in NOT_RUN:
                continue
            if decides := re.match(r"refund (?:approve|reject) (\S+)", line):
                await shell.until(decides[1], "", "awaiting_approval")
            await shell.run(line)
        # Of the last one, the README looks at what it is doing while it still does it.
        await shell.until("8896", "refunded", "closed")
        assert await shell.ends() == {order: (end, "closed") for order, end in ENDS.items()}
    assert json.loads((tmp_path / ".northwind" / "refund-8890.json").read_text())["events"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_line_can_be_typed(document: Path) -> None:
    """Every `refund …` of a document is a command with options that it has; every target exists."""
    group: Any = typer.main.get_command(app)
    makefile = (ROOT / "Makefile").read_text()
    for line in documents.commands(document):
        program, *arguments = shlex.split(line, comments=True)
        if program == "make":
            assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in arguments)
        if program == "refund":
            name, *rest = arguments
            if ">" in rest:
                rest = rest[: rest.index(">")]
            group.commands[name].make_context(name, rest)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_and_path_leads_somewhere(document: Path) -> None:
    """Documentation names nothing that has moved."""
    broken = [link for link in documents.links(document) if not (document.parent / link).exists()]
    broken += [path for path in documents.paths(document) if not (ROOT / path).exists()]
    assert broken == []


def test_the_map_leads_from_each_question_to_one_file() -> None:
    """Each question has one answer, and no two questions the same."""
    answers = [documents.links_in(cells[1]) for cells in documents.rows(README, "Where to look")]
    assert len(answers) >= 10
    assert all(len(files) == 1 and (ROOT / files[0]).is_file() for files in answers), answers
    assert len({files[0] for files in answers}) == len(answers)


def test_every_promise_has_tests_that_exist() -> None:
    """The architecture's table names, for each of the eight promises, what keeps it."""
    found = list(documents.rows(ARCHITECTURE, "Promises and the tests that keep them"))
    assert [cells[0].split()[0] for cells in found] == [f"P{number}" for number in range(1, 9)]
    for promise, kept_by in found:
        tests = documents.paths_in(kept_by)
        assert tests, promise
        assert all((ROOT / test).exists() for test in tests), promise


def test_the_safeguards_are_those_that_are_broken() -> None:
    """The architecture's list names, by promise, exactly what `make mutants` breaks."""
    heading = "Safeguards, and what misses each"
    told = {promise: names.split("; ") for promise, names in documents.rows(ARCHITECTURE, heading)}
    broken: dict[str, list[str]] = {}
    for mutant in ALL:
        broken.setdefault(mutant.promise, []).append(mutant.name)
    assert told == broken


def test_the_runbook_knows_every_reason_for_a_person() -> None:
    """Each reason is in the runbook's table, or goes with an outcome that needs nobody."""
    needs_nobody = {
        *MISTAKES_OF_THE_REQUESTER,
        *(Reason.PAYMENT_DISPUTED, Reason.OUTSIDE_RETURN_WINDOW, Reason.REFUND_FAILED),
        *(Reason.REFUNDED_BEFORE, Reason.REFUNDED_BY_HAND, Reason.VERIFIED),
        *(Reason.REJECTED_BY_APPROVER, Reason.NOBODY_DECIDED, Reason.TOLD_BEFORE),
        *(Reason.WITHDRAWN_BY_STAFF, Reason.CANCELLED_IN_TEMPORAL),
    }
    told = [cells[0].strip("`") for cells in documents.rows(RUNBOOK, "A run needs a person")]
    assert sorted(told) == sorted(set(Reason) - needs_nobody)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_variable_is_a_setting(document: Path) -> None:
    """A variable that a document names is one that the settings or the command read."""
    fields = Settings.model_fields.items()
    known = {str(field.validation_alias or f"NORTHWIND_{name.upper()}") for name, field in fields}
    known |= {"NORTHWIND_AS", "NORTHWIND_DEBUG"}
    text = document.read_text()
    named = set(re.findall(r"\b(?:NORTHWIND_[A-Z_]*[A-Z]|[A-Z]+_API_KEY)\b", text))
    assert named <= known


def test_a_line_that_the_demo_does_not_print_is_found() -> None:
    """The comparison of the README's story forgives times, ids and ports, and nothing else."""
    story = "   1.4 s  Temporal  127.0.0.1:42765  (process 28946)\nmail  refunded\nmail  refunded"
    told = "  21.0 s  Temporal  127.0.0.1:1  (process 7)\nmail  refunded"
    assert documents.untold(told, story) == ["mail  refunded"]


def test_every_test_that_a_document_names_exists() -> None:
    """A promise is kept by a test that can be run: the documents name none that is gone."""
    named = {
        name
        for document in DOCUMENTS
        for name in re.findall(r"`(tests/[\w/.]+(?:::\w+)?)`", document.read_text())
    }
    assert len(named) > 15
    for name in sorted(named):
        path, _, test = name.partition("::")
        assert (ROOT / path).exists(), name
        assert not test or f"def {test}(" in (ROOT / path).read_text(), name
