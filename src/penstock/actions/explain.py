"""Says what a code means."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from penstock.checks.every_rule import rules
from penstock.codes import all_codes
from penstock.problems import Problem, UserError, did_you_mean


@dataclass(frozen=True)
class Explanation:
    """A code with its reason and its two examples."""

    code: str
    severity: str
    title: str
    why: str
    wrong: str
    right: str
    guide: str = ""
    """The section of Spark's Structured Streaming guide that it comes from."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def all_explanations() -> tuple[Explanation, ...]:
    """Every code there is, in order."""
    of_rules = [Explanation(r.code, r.severity, r.title, r.why, r.wrong, r.right, r.guide) for r in rules()]
    of_codes = [Explanation(c.code, "error", c.title, c.why, c.wrong, c.right) for c in all_codes()]
    return tuple(sorted(of_rules + of_codes, key=lambda explanation: explanation.code))


def explain_code(code: str) -> Explanation:
    """Raises UserError when there is no such code."""
    known = {explanation.code: explanation for explanation in all_explanations()}
    found = known.get(code.upper())
    if found is None:
        raise UserError(
            Problem(
                "EXPLAIN001",
                f"there is no code `{code}`{did_you_mean(code.upper(), known)}",
                "run `penstock explain` for all codes",
            )
        )
    return found
