"""What was put back before. Of what a crash left in doubt: what has arrived."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from penstock.connections import kafka_records
from penstock.connections.kafka import KafkaAddress
from penstock.dead_letters.opened import Opened, told
from penstock.dead_letters.replay_notes import ReplayNote, replayed
from penstock.pipeline.model import Pipeline
from penstock.problems import Fault

HEADER = "penstock-replay-of"
"""The header of a record that was put back into a topic: the id of its dead letter."""


def put_back_before(project: Opened, pipeline: Pipeline, *, dry_run: bool) -> dict[str, str]:
    """By id, when a letter was put back. Unless it is a dry run, what was in doubt is noted. Raises UserError."""
    notes = project.notes(pipeline)
    with told(pipeline):
        found = []
        for note in notes.all():
            arrived = _arrived(note, project, pipeline) if note.sent is None else None
            if arrived is None:
                found.append(note)
            else:
                found.append(replace(note, sent=tuple(arrived)) if dry_run else notes.end(note, arrived))
    return replayed(found)


def _arrived(note: ReplayNote, project: Opened, pipeline: Pipeline) -> Iterable[str] | None:
    """The letters of a note that are where they were sent; None if nobody can look there any more."""
    if note.file is not None:
        return note.ids if project.storage(note.file).is_file(note.file) else ()
    if note.topic is None:
        return ()
    source = next((one for one in pipeline.sources if one.name == note.source), None)
    if source is None or not isinstance(source.spec, KafkaAddress):
        return None
    since = {int(partition): end for partition, end in note.ends.items()}
    try:
        return set(note.ids) & set(_replays_in(source.spec, note.topic, since))
    except Fault as fault:
        if fault.code != kafka_records.GONE:
            raise
        return ()


def _replays_in(spec: KafkaAddress, topic: str, since: Mapping[int, int]) -> Iterator[str]:
    """The letters whose records were put back into a topic."""
    for record in kafka_records.read(spec, topic, since):
        yield from (value.decode() for key, value in record.headers if key == HEADER and value)
