"""Puts dead letters back where they came from, once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from penstock.actions.check import StartEngine
from penstock.actions.dead_letters import Opened, chosen, opened, told
from penstock.actions.mended import Mended, read_mended, require_copies
from penstock.checkpoint.watermarks import Horizon, horizons
from penstock.connections import kafka_records
from penstock.connections.kafka import KafkaAddress
from penstock.crash_points import reached
from penstock.dead_letters import replay_files
from penstock.dead_letters.letters import Choice, Letter
from penstock.dead_letters.replay_homes import Home, Homeless, Record, event_time, home_of
from penstock.dead_letters.replay_notes import Note, replayed
from penstock.engine import resolve
from penstock.pipeline.model import Pipeline, Source
from penstock.problems import Fault, Problem, Severity, UserError, errors_in
from penstock.supervise.start import lock_folder

HEADER = "penstock-replay-of"
"""The header of a record that was put back into a topic: the id of its dead letter."""
_LOT = 1_000
"""So many records go to a topic between two notes: what a crash leaves in doubt, and the next run looks for."""

Status = Literal["sent", "would be sent", "sent before", "unchanged", "late", "cannot be sent", "failed"]


@dataclass(frozen=True)
class ReplayOptions:
    """How letters are put back."""

    mended: Path | None = None
    """A file as `export` writes it, with records that were mended."""
    unchanged: bool = False
    """Sends what the file holds unchanged too."""
    again: bool = False
    """Sends also what was sent before."""
    skip_late: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class LateFor:
    """A query that will take the record for late."""

    query: str
    watermark: datetime
    event_time: datetime

    def to_json(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "watermark": self.watermark.isoformat(),
            "event_time": self.event_time.isoformat(),
        }


@dataclass(frozen=True)
class Outcome:
    """What became of one letter."""

    letter: Letter
    status: Status
    to: str | None = None
    why: str | None = None
    late_for: tuple[LateFor, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.letter.id,
            "pipeline": self.letter.pipeline,
            "node": self.letter.node,
            "check": self.letter.check,
            "status": self.status,
            "to": self.to,
            "why": self.why,
            "late_for": [late.to_json() for late in self.late_for],
        }


@dataclass(frozen=True)
class ReplayResult:
    """What became of each letter that was meant."""

    outcomes: tuple[Outcome, ...]
    problems: tuple[Problem, ...]

    @property
    def ok(self) -> bool:
        return not errors_in(self.problems)

    @property
    def has_failed(self) -> bool:
        """Did something that was to be sent not arrive?"""
        return any(outcome.status == "failed" for outcome in self.outcomes)

    @property
    def counts(self) -> Counter[Status]:
        return Counter(outcome.status for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "counts": dict(self.counts),
            "letters": [outcome.to_json() for outcome in self.outcomes],
            "problems": [problem.to_json() for problem in self.problems],
        }


def replay(
    start: Path,
    selection: tuple[str, ...],
    environment: str | None,
    choice: Choice,
    options: ReplayOptions,
    start_engine: StartEngine,
) -> ReplayResult:
    """Raises UserError before anything is sent; what happens then is in the result."""
    mended = read_mended(options.mended) if options.mended is not None else None
    if mended is not None:
        choice = replace(choice, ids=tuple(mended))
    with opened(start, selection, environment, start_engine) as project:
        found = chosen(project, choice)
        outcomes: list[Outcome] = []
        problems: list[Problem] = []
        for pipeline, letters in found:
            if mended is not None:
                require_copies(letters, mended, options.mended)
            with _alone(project, pipeline, options):
                one = _Replay(project, pipeline, options)
                outcomes += one.run(letters, mended)
                problems += resolve.masked(one.problems, project.project, os.environ)
    stopped = {problem.message for problem in problems}
    problems += _problems([outcome for outcome in outcomes if outcome.why not in stopped])
    return ReplayResult(tuple(outcomes), tuple(problems))


class _Replay:
    """The replay of one pipeline's letters."""

    def __init__(self, project: Opened, pipeline: Pipeline, options: ReplayOptions) -> None:
        self._project, self._pipeline, self._options = project, pipeline, options
        self._notes = project.notes(pipeline)
        self._horizons: dict[str, list[Horizon]] = {}
        self.problems: list[Problem] = []
        """What stopped the sending to a topic or folder."""

    def run(self, letters: list[Letter], mended: Mended | None) -> list[Outcome]:
        done = {} if self._options.again else self._settled()
        outcomes: list[Outcome] = []
        waiting: dict[str, list[tuple[Record, tuple[LateFor, ...]]]] = {}
        copies: Counter[str] = Counter()
        for letter in letters:
            copy = copies[letter.id]
            copies[letter.id] += 1
            if mended is not None and copy >= len(mended[letter.id]):
                continue  # of several that are alike, the file has only some
            raw = letter.raw if mended is None else mended[letter.id][copy]
            planned = self._planned(letter, raw, copy, done, from_file=mended is not None)
            if isinstance(planned, Outcome):
                outcomes.append(planned)
            else:
                home = planned[0].home
                waiting.setdefault(f"{home.source.name} {home}", []).append(planned)
        for records in waiting.values():
            outcomes += self._sent(records)
        return outcomes

    def _planned(
        self, letter: Letter, raw: bytes | None, copy: int, done: Mapping[str, str], *, from_file: bool
    ) -> Outcome | tuple[Record, tuple[LateFor, ...]]:
        if letter.id in done:
            return Outcome(letter, "sent before", why=f"on {done[letter.id]}")
        if from_file and raw == letter.raw and not self._options.unchanged:
            return Outcome(letter, "unchanged")
        try:
            home = home_of(letter, self._pipeline, raw != letter.raw)
        except Homeless as homeless:
            return Outcome(letter, "cannot be sent", why=str(homeless))
        record = Record(letter, raw, home, copy)
        late = tuple(self._late(record))
        if late and self._options.skip_late:
            return Outcome(letter, "late", str(home), late_for=late)
        return record, late

    def _late(self, record: Record) -> Iterator[LateFor]:
        source = record.home.source.name
        if source not in self._horizons:
            root = self._project.root
            self._horizons[source] = horizons(self._project.storage(root), root, self._pipeline, source)
        for horizon in self._horizons[source]:
            for column in horizon.columns:
                moment = event_time(record, column)
                if moment is not None and moment <= horizon.watermark:
                    yield LateFor(horizon.query, horizon.watermark, moment)
                    break

    def _sent(self, planned: list[tuple[Record, tuple[LateFor, ...]]]) -> Iterator[Outcome]:
        """What became of records of one home."""
        home, late_for = planned[0][0].home, {id(record): late for record, late in planned}
        records = [record for record, _ in planned]
        try:
            sending = self._to_topic(home, records) if home.topic is not None else self._to_folder(home, records)
            for outcome, record in sending:
                yield replace(outcome, late_for=late_for.pop(id(record)))
        except UserError as error:
            self.problems += error.problems
        except Fault as fault:
            self.problems.append(fault.at(home.source.origin.at(*fault.keys)))
        for record in records:
            if id(record) in late_for:
                yield Outcome(record.letter, "failed", str(home), self.problems[-1].message, late_for[id(record)])

    def _to_topic(self, home: Home, records: list[Record]) -> Iterator[tuple[Outcome, Record]]:
        spec, topic = _address(home.source), home.topic or ""
        ends = kafka_records.ends_of(spec, topic)
        records.sort(key=lambda record: (record.letter.partition or 0, record.letter.offset or 0))
        lots = [records[index : index + _LOT] for index in range(0, len(records), _LOT)]
        broken = False
        for lot in lots:
            if self._options.dry_run or broken:
                status: Status = "failed" if broken else "would be sent"
                why = "not tried, after those that failed" if broken else None
                yield from ((Outcome(record.letter, status, str(home), why), record) for record in lot)
                continue
            refusals = self._written(home, lot, ends)
            for record, why in zip(lot, refusals, strict=True):
                yield Outcome(record.letter, "failed" if why else "sent", str(home), why), record
            broken = any(refusals)
            ends = kafka_records.ends_of(spec, topic) if not broken and lot is not lots[-1] else ends

    def _written(self, home: Home, lot: list[Record], ends: dict[int, int]) -> list[str | None]:
        """For each record of a lot, why the topic has not taken it. What is in doubt stays noted as under way."""
        to = {"topic": home.topic, "ends": {str(partition): end for partition, end in ends.items()}}
        with told(self._pipeline):
            note = self._notes.begin(_ids(lot), home.source.name, **to)
        messages = [_message(record, ends) for record in lot]
        refusals = kafka_records.write(_address(home.source), home.topic or "", messages)
        reached("during_replay")
        refused = [record for record, why in zip(lot, refusals, strict=True) if why]
        with told(self._pipeline):
            if refused:  # a broker may have a record and its answer be lost: the next run looks
                self._notes.begin(_ids(refused), home.source.name, **to)
            self._notes.end(note, _ids(record for record, why in zip(lot, refusals, strict=True) if not why))
        return refusals

    def _to_folder(self, home: Home, records: list[Record]) -> Iterator[tuple[Outcome, Record]]:
        spec: Any = home.source.spec
        storage = self._project.storage(home.folder or "")
        for draft in replay_files.drafts(home, records):
            if not isinstance(draft, replay_files.Draft):
                record, why = draft
                yield Outcome(record.letter, "cannot be sent", str(home), why), record
                continue
            if self._options.dry_run:
                yield from ((Outcome(one.letter, "would be sent", str(home)), one) for one in draft.records)
                continue
            with told(self._pipeline):
                note = self._notes.begin(_ids(draft.records), home.source.name, file=draft.path)
            written = set(replay_files.write(draft, storage, self._project.engine, spec))
            reached("during_replay")
            with told(self._pipeline):
                self._notes.end(note, written)
            for one in draft.records:
                arrived = one.letter.id in written
                unfit = None if arrived else "it does not fit the columns of the source"
                yield Outcome(one.letter, "sent" if arrived else "failed", draft.path, unfit), one

    def _settled(self) -> dict[str, str]:
        """By id, what was sent before; of what a crash left in doubt, what has arrived."""
        with told(self._pipeline):
            notes = [note if note.sent is not None else self._arrived(note) for note in self._notes.all()]
        return replayed(notes)

    def _arrived(self, note: Note) -> Note:
        sent: Iterable[str] = ()
        if note.file is not None:
            sent = note.ids if self._project.storage(note.file).is_file(note.file) else ()
        elif note.topic is not None:
            source = next((one for one in self._pipeline.sources if one.name == note.source), None)
            if source is None or not isinstance(source.spec, KafkaAddress):
                return note
            since = {int(partition): end for partition, end in note.ends.items()}
            try:
                sent = set(note.ids) & set(_replays_in(source.spec, note.topic, since))
            except Fault as fault:
                if fault.code != kafka_records.GONE:
                    raise
        return replace(note, sent=tuple(sent)) if self._options.dry_run else self._notes.end(note, sent)


@contextmanager
def _alone(project: Opened, pipeline: Pipeline, options: ReplayOptions) -> Iterator[None]:
    """One replay at a time: two could send the same letters. Raises UserError."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    if options.dry_run:
        yield
        return
    folder = lock_folder(project.project)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{pipeline.name}.replay.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                Problem("DEADLETTER008", f"another replay of `{pipeline.name}` is under way", "wait for its end")
            ) from None
        yield


def _address(source: Source) -> KafkaAddress:
    assert isinstance(source.spec, KafkaAddress)  # noqa: S101 - for the type checker: only they have topics
    return source.spec


def _message(record: Record, ends: Mapping[int, int]) -> kafka_records.Record:
    """The record with its key and headers, for the partition that it was in."""
    letter = record.letter
    headers = [(key, value) for key, value in letter.headers if key != HEADER]
    headers.append((HEADER, letter.id.encode()))
    partition = letter.partition if letter.partition in ends else None
    return kafka_records.Record(record.raw, letter.key, tuple(headers), partition)


def _ids(records: Iterable[Record]) -> list[str]:
    return [record.letter.id for record in records]


def _replays_in(spec: KafkaAddress, topic: str, since: Mapping[int, int]) -> Iterator[str]:
    """The letters whose records were put back into a topic."""
    for record in kafka_records.read(spec, topic, since):
        yield from (value.decode() for key, value in record.headers if key == HEADER and value)


def _problems(outcomes: Sequence[Outcome]) -> Iterator[Problem]:
    """What letters could not be put back, told once for each reason."""
    got_through = any(outcome.status in ("sent", "would be sent", "sent before", "unchanged") for outcome in outcomes)
    grouped: Counter[tuple[str, Status, str]] = Counter(
        (outcome.letter.node, outcome.status, outcome.why or "")
        for outcome in outcomes
        if outcome.status in ("failed", "cannot be sent")
    )
    for (node, status, why), count in grouped.items():
        letters = f"{count} dead letter{'s' if count > 1 else ''} of `{node}`"
        if status == "failed":
            yield Problem(
                replay_files.UNSENT, f"{letters} could not be put back: {why}",
                "mend what is in the way, then run the same command again: what was sent is not sent twice",
            )  # fmt: skip
        else:
            severity: Severity = "warning" if got_through else "error"
            yield Problem(
                "DEADLETTER005", f"{letters} cannot be put back: {why}",
                "put the records right where they come from, or leave these letters out", severity=severity,
            )  # fmt: skip
