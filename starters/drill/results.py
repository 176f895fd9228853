"""What a run of a drill came to, and how it is run again."""

from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any

from starters.drill.evidence import Finding
from starters.drill.kinds import kinds
from starters.drill.plan import Plan

FINDINGS = ("duplicate", "lost", "silent", "wrong", "stuck")
UNKNOWN = "unknown"
"""The outcome of a run that came to none."""


@dataclass(frozen=True)
class Result:
    """One run of a drill."""

    plan: Plan
    evidence: dict[str, Any]
    """As `evidence.as_data` tells it."""
    findings: tuple[Finding, ...]
    seconds: float
    """How long it took."""
    seed: int | None = None
    """What the plan was drawn by, and under which number; None where it was not drawn."""
    number: int | None = None
    older: Path | None = None
    """The folder of the release that its worker began with, where that was not the code here."""
    apart: bool = False
    """Whether it is a case of hosts apart, which is named as its order."""

    @property
    def outcome(self) -> str:
        """The run's own word on how it ended."""
        return self.evidence.get("outcome") or UNKNOWN

    def again(self, saved: Path | None = None) -> str:
        """The command that runs it again; a plan that was not drawn has to be saved for it."""
        if self.apart:
            return join(["refund", "drill", "--apart", self.plan.order_id])
        began = ["--from", str(self.older)] if self.older is not None else []
        if saved is not None or self.seed is None or self.number is None:
            return join(["refund", "drill", *began, "--plan", str(saved or "FILE")])
        drawn = ["--seed", str(self.seed), "--run", str(self.number)]
        return join(["refund", "drill", *began, *drawn])


def summary(results: list[Result], seconds: float) -> dict[str, Any]:
    """What all runs came to, as data: counts by kind and outcome, findings, and the rate."""
    return {
        "runs": len(results),
        "failed": sum(bool(result.findings) for result in results),
        "seconds": round(seconds, 1),
        "runs_a_minute": round(60 * len(results) / seconds, 1) if seconds > 0 else None,
        "seeds": sorted({result.seed for result in results if result.seed is not None}),
        "findings": counted([f.kind for result in results for f in result.findings], FINDINGS),
        "outcomes": counted([result.outcome for result in results]),
        "kinds": counted([kind for result in results for kind in kinds(result.plan)]),
    }


def counted(words: list[str], always: tuple[str, ...] = ()) -> dict[str, int]:
    """How often each word comes; those that are always told are told with 0 as well."""
    return {word: words.count(word) for word in (*always, *sorted(set(words) - set(always)))}


def as_data(results: list[Result], seconds: float) -> dict[str, Any]:
    """Summary and runs, for scripts."""
    return {
        "summary": summary(results, seconds),
        "results": [
            {
                "seed": result.seed,
                "number": result.number,
                "seconds": round(result.seconds, 2),
                "findings": [vars(finding) for finding in result.findings],
                "again": result.again(),
                **result.evidence,
            }
            for result in results
        ],
    }
