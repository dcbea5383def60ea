"""Puts records back into the topic or folder that they came from, each noted before it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.connections import kafka_records
from penstock.connections.kafka import KafkaAddress
from penstock.crash_points import reached
from penstock.dead_letters.opened import Opened, told
from penstock.dead_letters.replay import drafts
from penstock.dead_letters.replay.arrived import HEADER
from penstock.dead_letters.replay.homes import Home, RecordToReturn
from penstock.dead_letters.replay.outcome import ReplayOutcome, Status
from penstock.dead_letters.replay.planning import ToSend
from penstock.dead_letters.replay_notes import ReplayNote
from penstock.pipeline.model import Pipeline, Source
from penstock.problems import Fault, Problem, UserError

_LOT = 1_000
"""This many records go to a topic between two notes: what a crash leaves in doubt, and the next run looks for."""


class Sender:
    """Sends the letters of one pipeline."""

    def __init__(self, project: Opened, pipeline: Pipeline, *, dry_run: bool) -> None:
        self._project, self._pipeline, self._dry_run = project, pipeline, dry_run
        self._notes = project.notes(pipeline)
        self.problems: list[Problem] = []
        """What stopped the sending to a topic or folder."""

    def send(self, planned: list[ToSend]) -> Iterator[ReplayOutcome]:
        """Sends records of one home, and tells what became of each."""
        home, late_for = planned[0].record.home, {id(one.record): one.late_for for one in planned}
        records = [one.record for one in planned]
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
                yield ReplayOutcome(record.letter, "failed", str(home), self.problems[-1].message, late_for[id(record)])

    def _to_topic(self, home: Home, records: list[RecordToReturn]) -> Iterator[tuple[ReplayOutcome, RecordToReturn]]:
        spec, topic = _address(home.source), home.topic or ""
        ends = kafka_records.ends_of(spec, topic)
        records.sort(key=lambda record: (record.letter.partition or 0, record.letter.offset or 0))
        lots = [records[index : index + _LOT] for index in range(0, len(records), _LOT)]
        broken = False
        for lot in lots:
            if self._dry_run or broken:
                status: Status = "failed" if broken else "would be sent"
                why = "not tried, after those that failed" if broken else None
                yield from ((ReplayOutcome(record.letter, status, str(home), why), record) for record in lot)
                continue
            refusals = self._written(home, lot, ends)
            for record, why in zip(lot, refusals, strict=True):
                yield ReplayOutcome(record.letter, "failed" if why else "sent", str(home), why), record
            broken = any(refusals)
            ends = kafka_records.ends_of(spec, topic) if not broken and lot is not lots[-1] else ends

    def _written(self, home: Home, lot: list[RecordToReturn], ends: dict[int, int]) -> list[str | None]:
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

    def _to_folder(self, home: Home, records: list[RecordToReturn]) -> Iterator[tuple[ReplayOutcome, RecordToReturn]]:
        spec: Any = home.source.spec
        storage = self._project.storage(home.folder or "")
        for draft in drafts.drafts(home, records):
            if not isinstance(draft, drafts.Draft):
                record, why = draft
                yield ReplayOutcome(record.letter, "cannot be sent", str(home), why), record
                continue
            if self._dry_run:
                yield from ((ReplayOutcome(one.letter, "would be sent", str(home)), one) for one in draft.records)
                continue
            begun: list[ReplayNote] = []

            def begin(ids: list[str], path: str = draft.path, begun: list[ReplayNote] = begun) -> None:
                with told(self._pipeline):
                    begun.append(self._notes.begin(ids, home.source.name, file=path))

            written = set(drafts.write(draft, storage, self._project.engine, spec, begin))
            reached("during_replay")
            with told(self._pipeline):
                for note in begun:  # none where no record fits
                    self._notes.end(note, written)
            for one in draft.records:
                arrived = one.letter.id in written
                unfit = None if arrived else "it does not fit the columns of the source"
                yield ReplayOutcome(one.letter, "sent" if arrived else "failed", draft.path, unfit), one


def _address(source: Source) -> KafkaAddress:
    assert isinstance(source.spec, KafkaAddress)  # noqa: S101 - for the type checker: only they have topics
    return source.spec


def _message(record: RecordToReturn, ends: Mapping[int, int]) -> kafka_records.KafkaRecord:
    """The record with its key and headers, for the partition that it was in."""
    letter = record.letter
    headers = [(key, value) for key, value in letter.headers if key != HEADER]
    headers.append((HEADER, letter.id.encode()))
    partition = letter.partition if letter.partition in ends else None
    return kafka_records.KafkaRecord(record.raw, letter.key, tuple(headers), partition)


def _ids(records: Iterable[RecordToReturn]) -> list[str]:
    return [record.letter.id for record in records]
