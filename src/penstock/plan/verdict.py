"""What a start would do to a query's checkpoint, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from penstock.problems import Problem, Where

Verdict = Literal["new", "resume", "warn", "migrate", "restart", "refuse"]
"""`new`: there is no checkpoint yet. `resume`: it goes on, and its rows are right. `warn`: it goes on, and something
changes from here on. `migrate` and `restart`: it needs a new generation, with or without what the old one holds.
`refuse`: it cannot start as it is."""
_ORDER: tuple[Verdict, ...] = ("new", "resume", "warn", "migrate", "restart", "refuse")
STOPS: frozenset[Verdict] = frozenset({"migrate", "restart", "refuse"})
"""The verdicts with which a run does not start."""


@dataclass(frozen=True)
class PlanFinding:
    """One thing that has changed, is damaged or does not fit, and what follows from it."""

    code: str
    node: str
    """The source, step or sink that it concerns; the query itself where it concerns none of them."""
    message: str
    fix: str
    verdict: Verdict
    where: Where | None = None
    before: str = ""
    """What the checkpoint has, in the user's words."""
    now: str = ""
    """What the pipeline says."""

    def to_json(self) -> dict[str, Any]:
        problem = self.problem.to_json()
        return {
            "code": self.code,
            "node": self.node,
            "verdict": self.verdict,
            "message": self.message,
            "fix": self.fix,
            "where": problem["where"],
            "before": self.before or None,
            "now": self.now or None,
        }

    @property
    def problem(self) -> Problem:
        severity: Literal["error", "warning"] = "error" if self.verdict in STOPS else "warning"
        return Problem(self.code, self.message, self.fix, self.where, severity)


@dataclass(frozen=True)
class QueryPlan:
    """What a start would do to one query."""

    pipeline: str
    query: str
    findings: tuple[PlanFinding, ...] = ()
    is_new: bool = False
    generation: int | None = None
    last_batch: int | None = None
    """The newest committed batch."""
    promise: str = ""

    @property
    def verdict(self) -> Verdict:
        return worst((*(finding.verdict for finding in self.findings), "new" if self.is_new else "resume"))

    @property
    def stops(self) -> bool:
        return self.verdict in STOPS

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What to report at a start: everything but notes on a plain resume."""
        return tuple(finding.problem for finding in self.findings if finding.verdict != "resume")

    def without(self, *codes: str) -> QueryPlan:
        """The same without the findings of these codes."""
        return replace(self, findings=tuple(one for one in self.findings if one.code not in codes))

    def accepting(self, codes: Iterable[str]) -> QueryPlan:
        """The same after the user has accepted some findings by their codes: these only warn."""
        accepted = frozenset(codes)
        return replace(
            self,
            findings=tuple(
                replace(finding, verdict="warn")
                if finding.code in accepted and finding.verdict in ("migrate", "restart")
                else finding
                for finding in self.findings
            ),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "query": self.query,
            "verdict": self.verdict,
            "generation": self.generation,
            "last_batch": self.last_batch,
            "promise": self.promise,
            "findings": [finding.to_json() for finding in self.findings],
        }


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    return max(verdicts, key=_ORDER.index)
