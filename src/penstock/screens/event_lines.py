"""Events of a run in words: a line for each that a person should know of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.notation.durations import to_words

if TYPE_CHECKING:
    from penstock.supervise.events import Event


def in_one_line(event: Event) -> str | None:
    """What happened, with the query that it happened to; None for what the table or a batch's line shows."""
    from penstock.supervise import events

    match event:
        case events.Away(node=node, side=side, problem=problem):
            said = f"{side} `{node}` is away: {problem.message}"
        case events.Back(node=node, side=side, seconds=seconds):
            said = f"{side} `{node}` is back after {to_words(seconds * 1_000)}"
        case events.FilesPassedOver(source=source, batch=batch, files=files, example=example):
            more = f" (and {files - 1:,} more)" if files > 1 else ""
            said = f"source `{source}` passed over `{example}`{more}: deleted before batch {batch} could read it"
        case events.LinesDropped(message=message):
            said = message
        case events.SchemaChanged(source=source):
            said = f"source `{source}` has a new schema"
        case events.Restarting(reason=reason, delay_seconds=delay, number=number):
            when = f"in {to_words(delay * 1_000)}" if delay else "now"
            said = f"restart {number} {when}: {reason}"
        case events.Stopped(state="failed", problem=problem) if problem is not None:
            said = f"gave up: {problem.code} {problem.message}"
        case _:
            return None
    return f"{event.pipeline}.{event.query} {said}"


def started_line(event: Event) -> str | None:
    """For a log, which has no table: the query runs, and with which promise."""
    from penstock.supervise import events

    if not isinstance(event, events.QueryStarted):
        return None
    return f"{event.pipeline}.{event.query} started · {event.promise}"
