"""The documents, taken apart: commands, links, paths, and the story that the demo must tell."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCUMENTS = [README, ROOT / "northwind" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Where a story leaves lines out.
LEFT_OUT = "[…]"

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)")
_FOLDERS = "domain|activities|workflows|workers|starters|northwind|tests|docs"
_PATH = re.compile(rf"`((?:{_FOLDERS})/[\w./-]*)`")
_VARIES = (
    (re.compile(r"\b(?:re_)?[0-9a-f]{24,}\b"), "<id>"),
    (re.compile(r"\b(?:(?:\d{4}-)?\d\d-\d\d )?\d\d:\d\d:\d\d\b"), "<time>"),
    (re.compile(r"^ *\d+\.\d s\b|\(\d+ s\)"), "<seconds>"),
    (re.compile(r"(?<=127\.0\.0\.1:)\d+"), "<port>"),
    (re.compile(r"\b(process|temporal|company|worker) \d+\b"), r"\1 <pid>"),
)


def blocks(document: Path, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return _blocks_in(document.read_text(), language)


def _blocks_in(text: str, language: str) -> list[str]:
    return [block for named, block in _BLOCK.findall(text) if named == language]


def chapter(document: Path, heading: str) -> str:
    """What stands below a heading of the second level."""
    _, found, below = document.read_text().partition(f"\n## {heading}\n")
    assert found, f"{document} has no heading {heading!r}"
    return below.partition("\n## ")[0]


def commands(document: Path, heading: str = "") -> list[str]:
    """The command lines of a document, or of one chapter, one by one, without their remarks."""
    text = chapter(document, heading) if heading else document.read_text()
    lines = "".join(_blocks_in(text, "sh")).splitlines()
    return [plain for line in lines if (plain := re.sub(r"(^| +)# .*", "", line))]


def links(document: Path) -> list[str]:
    """What the links of a document lead to, without those that lead out of the project."""
    return links_in(document.read_text())


def links_in(text: str) -> list[str]:
    """What the links of a text lead to, without those that lead out of the project."""
    found: list[str] = _LINK.findall(text)
    return [target for target in found if "://" not in target]


def paths(document: Path) -> list[str]:
    """The files and folders of the project that a document names."""
    return paths_in(document.read_text())


def paths_in(text: str) -> list[str]:
    """The files and folders of the project that a text names."""
    found: list[str] = _PATH.findall(text)
    return found


def untold(told: str, story: str) -> list[str]:
    """The lines of a story that a run has not printed; times, ids, ports may be others."""
    lines = Counter(_same(line) for line in story.splitlines())
    lines.subtract(Counter(_same(line) for line in told.splitlines()))
    return sorted(line for line, more in lines.items() if more > 0 and line != LEFT_OUT)


def _same(line: str) -> str:
    for pattern, name in _VARIES:
        line = pattern.sub(name, line)
    return line.rstrip()


def rows(document: Path, heading: str) -> Iterable[list[str]]:
    """The cells of the first table below a heading, without its head."""
    lines = [line for line in chapter(document, heading).splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
