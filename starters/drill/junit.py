"""The results as JUnit XML, which continuous integration reads."""

import re
from pathlib import Path
from xml.etree import ElementTree

from starters.drill.report import compact
from starters.drill.results import Result

SUITE = "refund drill"
# All that XML 1.0 has no place for, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_junit(file: Path, results: list[Result], seconds: float) -> None:
    """Write the file. Raises OSError where it cannot be written."""
    file.write_bytes(junit(results, seconds))


def junit(results: list[Result], seconds: float) -> bytes:
    """One test suite with a test case for each run; a finding is a failure."""
    suite = ElementTree.Element(
        "testsuite",
        name=SUITE,
        tests=str(len(results)),
        failures=str(sum(bool(result.findings) for result in results)),
        errors="0",
        skipped="0",
        time=f"{seconds:.3f}",
    )
    for result in results:
        suite.append(_case(result))
    written: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written


def _case(result: Result) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=SUITE.replace(" ", ".") if result.seed is None else f"refund.drill.{result.seed}",
        name=_text(f"{result.plan.order_id}: {result.plan.name}"),
        time=f"{result.seconds:.3f}",
    )
    if result.findings:
        words = [f"{finding.kind}: {finding.what}" for finding in result.findings]
        failure = ElementTree.SubElement(
            case, "failure", type=result.findings[0].kind, message=_text(words[0])
        )
        failure.text = _text("\n".join([*words, compact(result), result.again()]))
    return case


def _text(text: str) -> str:
    """The text with what XML forbids as escapes that a reader sees."""
    return _FORBIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
