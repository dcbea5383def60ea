"""What can be wrong with the files of a checkpoint, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.problems import Problem, Where

Kind = Literal[
    "identity",
    "unreadable",
    "altered",
    "missing",
    "contradiction",
    "source_log",
    "state_missing",
    "state_damaged",
    "state_copied",
    "state_schema",
    "ledger",
    "not_as_left",
    "left_over",
]
CODES: dict[Kind, str] = {
    "identity": "CHECKPOINT006",
    "unreadable": "CHECKPOINT010",
    "altered": "CHECKPOINT011",
    "missing": "CHECKPOINT012",
    "contradiction": "CHECKPOINT013",
    "source_log": "CHECKPOINT014",
    "state_missing": "CHECKPOINT015",
    "state_damaged": "CHECKPOINT016",
    "state_copied": "CHECKPOINT017",
    "state_schema": "CHECKPOINT018",
    "ledger": "LEDGER001",
    "not_as_left": "CHECKPOINT019",
    "left_over": "CHECKPOINT020",
}
_MEANINGS: dict[Kind, str] = {
    "identity": "sinks know by it what they have written; a run would write rows twice",
    "unreadable": "Spark cannot tell from it where to resume",
    "altered": "a run would fail on it, or read rows twice or not at all",
    "missing": "Spark cannot tell without it where the next batch begins",
    "contradiction": "a run would read rows twice or not at all",
    "source_log": "a run would read files twice or not at all",
    "state_missing": "the state of the last batch cannot be loaded",
    "state_damaged": "the state of the last batch cannot be loaded, or would be wrong",
    "state_copied": "the state would be that of another batch, and no run would fail",
    "state_schema": "Spark cannot compare the columns of the state with those of the query",
    "ledger": "a run cannot tell which batch the sink has",
    "not_as_left": "a run would resume at another place than the one where the last run stopped",
    "left_over": "Spark cannot write the file that it belongs to",
}


@dataclass(frozen=True)
class Damage:
    """One file of a checkpoint that is missing, broken, or does not fit the others."""

    kind: Kind
    file: str
    what: str
    """What is wrong with the file: `is empty`, `is missing`."""
    fix: str
    heals: bool = False
    """Can a start go on as if nothing had been? Spark does not need the file, or `heal` removes it."""

    @property
    def code(self) -> str:
        return CODES[self.kind]

    @property
    def meaning(self) -> str:
        return _MEANINGS[self.kind]

    @property
    def message(self) -> str:
        return f"`{self.file}` {self.what}: {self.meaning}"

    def problem(self, where: Where | None = None) -> Problem:
        return Problem(self.code, self.message, self.fix, where, "warning" if self.heals else "error")

    def to_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "kind": self.kind,
            "file": self.file,
            "message": self.message,
            "fix": self.fix,
            "heals": self.heals,
        }


def stops(found: Iterable[Damage]) -> list[Damage]:
    """Those with which a query must not start."""
    return [damage for damage in found if not damage.heals]


def reset_command(name: str, place: str = "earliest") -> str:
    """The command that gives the query `pipeline.query` a new checkpoint."""
    return f"penstock checkpoint reset {name} --from {place}"


def ways_out(name: str, checkpoint: str) -> str:
    return f"restore `{checkpoint}` from a backup as a whole, or begin a new checkpoint: `{reset_command(name)}`"
