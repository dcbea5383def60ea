"""What a run should have written, when each record was answered, and whether the result is the right one. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.bench.workloads.workload import Answer, InputRecord, Step, Workload, fields_of


@dataclass(frozen=True)
class Received:
    """An output record, and when it came."""

    at: int
    """Microseconds since 1970."""
    outcome: Answer


def expected(workload: Workload, records: Iterable[InputRecord], step: Step | None = None) -> list[tuple[int, Answer]]:
    """By the plain-Python model, or by one that has seen records already: each answer, with its record's number."""
    step = step or workload.model()
    return [
        (number, workload.outcome(fields))
        for number, record in enumerate(records)
        for fields in step(fields_of(record.value))
    ]


def received(workload: Workload, outputs: Iterable[tuple[int, bytes]]) -> list[Received]:
    """Outputs as they came, each with its time in microseconds."""
    return [Received(at, workload.outcome(fields_of(value))) for at, value in outputs]


class Waiting:
    """The answers that have not come yet."""

    def __init__(self, wanted: Sequence[tuple[int, Answer]] = ()) -> None:
        self._of_tag: dict[str, list[tuple[int, int]]] = {}
        self.left = 0
        self.expect(wanted)

    def expect(self, wanted: Sequence[tuple[int, Answer]]) -> None:
        """Waits for these too, which come after all others."""
        later: dict[str, list[tuple[int, int]]] = {}
        for number, outcome in reversed(wanted):
            later.setdefault(outcome.tag, []).append((outcome.version, number))
        self._of_tag |= {tag: of_tag + self._of_tag.get(tag, []) for tag, of_tag in later.items()}
        self.left += len(wanted)

    def take(self, outputs: Iterable[Received]) -> dict[int, int]:
        """By the number of a record, when the first of these outputs came that covers its answer."""
        times: dict[int, int] = {}
        for output in outputs:
            of_tag = self._of_tag.get(output.outcome.tag, [])
            while of_tag and of_tag[-1][0] <= output.outcome.version:
                times[of_tag.pop()[1]] = output.at
                self.left -= 1
        return times


def digest(outcomes: Iterable[Answer]) -> str:
    """A short name of a result: the newest version of each tag, whatever the order and however often it was written.

    Two different outcomes of one tag and version are both in it, so that a wrong one cannot hide behind a right one.
    """
    newest: dict[str, tuple[int, set[str]]] = {}
    for outcome in outcomes:
        version, rests = newest.get(outcome.tag, (-1, set()))
        if outcome.version > version:
            newest[outcome.tag] = (outcome.version, {outcome.rest})
        elif outcome.version == version:
            rests.add(outcome.rest)
    lines = sorted(f"{tag}\t{version}\t{sorted(rests)}\n" for tag, (version, rests) in newest.items())
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:16]
