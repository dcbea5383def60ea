"""Which dead letters are put back, and where: decided before anything is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.checkpoint.watermarks import Horizon
from penstock.dead_letters.letters import Letter
from penstock.dead_letters.replay.corrected import Corrected
from penstock.dead_letters.replay.homes import Homeless, RecordToReturn, event_time_of, home_of
from penstock.dead_letters.replay.outcome import LateFor, ReplayOutcome
from penstock.pipeline.model import Pipeline


@dataclass(frozen=True)
class ReplayOptions:
    """How letters are put back."""

    corrected: Path | None = None
    """A file as `export` writes it, with records that were corrected."""
    unchanged: bool = False
    """Sends what the file holds unchanged too."""
    again: bool = False
    """Sends also what was sent before."""
    skip_late: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class ToSend:
    """A record that will be sent, and the queries that will take it for late."""

    record: RecordToReturn
    late_for: tuple[LateFor, ...] = ()


@dataclass(frozen=True)
class ReplayPlan:
    """What is decided already, and what is to be sent, by source and home."""

    decided: list[ReplayOutcome] = field(default_factory=list)
    to_send: dict[str, list[ToSend]] = field(default_factory=dict)


@dataclass(frozen=True)
class Planner:
    """Plans the replay of one pipeline's letters."""

    pipeline: Pipeline
    options: ReplayOptions
    done: Mapping[str, str]
    """By id, when a letter was put back before."""
    horizons: Callable[[str], Sequence[Horizon]]
    """By source, how far the event time of the queries that read it has come."""

    def plan(self, letters: list[Letter], corrected: Corrected | None) -> ReplayPlan:
        plan = ReplayPlan()
        copies: Counter[str] = Counter()
        for letter in letters:
            copy = copies[letter.id]
            copies[letter.id] += 1
            if corrected is not None and copy >= len(corrected[letter.id]):
                continue  # of several that are alike, the file has only some
            raw = letter.raw if corrected is None else corrected[letter.id][copy]
            planned = self._planned(letter, raw, copy, from_file=corrected is not None)
            if isinstance(planned, ReplayOutcome):
                plan.decided.append(planned)
            else:
                home = planned.record.home
                plan.to_send.setdefault(f"{home.source.name} {home}", []).append(planned)
        return plan

    def _planned(self, letter: Letter, raw: bytes | None, copy: int, *, from_file: bool) -> ReplayOutcome | ToSend:
        if letter.id in self.done:
            return ReplayOutcome(letter, "sent before", why=f"on {self.done[letter.id]}")
        if from_file and raw == letter.raw and not self.options.unchanged:
            return ReplayOutcome(letter, "unchanged")
        try:
            home = home_of(letter, self.pipeline, raw != letter.raw)
        except Homeless as homeless:
            return ReplayOutcome(letter, "cannot be sent", why=str(homeless))
        record = RecordToReturn(letter, raw, home, copy)
        late = tuple(self._late(record))
        if late and self.options.skip_late:
            return ReplayOutcome(letter, "late", str(home), late_for=late)
        return ToSend(record, late)

    def _late(self, record: RecordToReturn) -> Iterator[LateFor]:
        for horizon in self.horizons(record.home.source.name):
            for column in horizon.columns:
                moment = event_time_of(record, column)
                if moment is not None and moment <= horizon.watermark:
                    yield LateFor(horizon.query, horizon.watermark, moment)
                    break
