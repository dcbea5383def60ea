"""What is known of a query, in words: the pieces of every line and cell."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.notation.counts import counted
from penstock.notation.durations import to_words

if TYPE_CHECKING:
    from penstock.supervise.query_view import QueryView

NONE = "–"
STATE_MARK = {
    "starting": "◌",
    "running": "●",
    "waiting": "○",
    "away": "▲",
    "restarting": "↻",
    "stopping": "◌",
    "done": "✓",
    "stopped": "■",
    "failed": "✗",
}
_MAY_BE_AWAY = ("running", "waiting")


def state_of(query: QueryView) -> str:
    """Its state, or `away` while it runs and a source or sink of it cannot be reached."""
    return "away" if query.away and query.state in _MAY_BE_AWAY else query.state


def age_of(seconds: float) -> str:
    """Whole seconds: `2 s`, `4 min 5 s`."""
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 60 else to_words(whole * 1_000)


def lag_of(query: QueryView, now: float) -> tuple[str, float] | None:
    """How much waits for it, and how many seconds ago that was counted; None where nobody knows.

    The rows that a real-time batch has read already wait no more.
    """
    if query.has_ended:
        return None
    if query.lag_at is not None:
        counts: Counter[str] = Counter()
        for unread in query.lag.values():
            counts[unread.unit] += unread.count
        if "record" in counts:
            counts["record"] = max(0, counts["record"] - query.under_way)
        parts = [f"{count:,}" if unit == "record" else counted(count, unit) for unit, count in counts.items()]
        return " + ".join(parts), now - query.lag_at
    last = query.last
    if last is None or last.behind is None:
        return None
    planned = datetime.fromisoformat(last.at).timestamp() if last.at else query.last_at
    return f"{last.behind:,.0f}", now - (planned or now)


def lag_words(query: QueryView, now: float) -> str:
    """`1,480 (2 s)`: the number, and its age."""
    lag = lag_of(query, now)
    return NONE if lag is None else f"{lag[0]} ({age_of(lag[1])})"


def late_words(rows: int, groups: int) -> list[str]:
    """What came behind the watermark: aggregations count groups of rows, all else rows."""
    return [f"{counted(number, noun)} late" for number, noun in ((rows, "row"), (groups, "group")) if number]


def times_words(query: QueryView) -> list[str]:
    """How late the records of the last batch came, and the pause before it."""
    times = query.last.slowest if query.last else None
    if times is None:
        return []
    told = {"p50": times.p50_ms, "p95": times.p95_ms, "p99": times.p99_ms, "max": times.max_ms}
    words = [f"latency {', '.join(f'{name} {to_words(value)}' for name, value in told.items())}"]
    return words if query.pause_ms is None else [*words, f"pause {to_words(query.pause_ms)}"]


def watermark_of(query: QueryView) -> str:
    """Without the fraction of its second: it is UTC."""
    watermark = query.last.watermark if query.last else None
    return watermark.replace("T", " ").partition(".")[0].removesuffix("Z") if watermark else NONE


def batch_words(query: QueryView) -> str:
    """The last batch, for a line of a log."""
    last = query.last
    if last is None:
        return ""
    words = [f"batch {last.batch}", f"{counted(last.rows_in, 'row')} in"]
    if last.rows_out is not None:
        words.append(f"{last.rows_out:,} out")
    words.append(to_words(last.duration_ms))
    words += times_words(query)
    if last.watermark:
        words.append(f"watermark {watermark_of(query)}")
    words += late_words(last.late_rows, last.late_groups)
    if last.refused:
        words.append(f"{last.refused:,} bad")
    return " · ".join(words)


def sum_words(query: QueryView) -> list[str]:
    """All batches of the run together."""
    words = [
        counted(query.batches, "batch"),
        f"{counted(query.rows_in, 'row')} in",
        f"{query.rows_out:,} out",
        *late_words(query.late_rows, query.late_groups),
    ]
    if query.bad_rows:
        words.append(f"{query.bad_rows:,} bad")
    if query.missing_files:
        words.append(f"{counted(query.missing_files, 'file')} missing")
    if query.restarts:
        words.append(counted(query.restarts, "restart"))
    return words


def heartbeat_words(query: QueryView, now: float) -> str:
    """How a query is, from time to time: for a log that would be silent otherwise."""
    words = [state_of(query), *sum_words(query)]
    if lag := lag_of(query, now):
        words.append(f"{lag[0]} behind ({age_of(lag[1])} ago)")
    if query.last and query.last.watermark:
        words.append(f"watermark {watermark_of(query)}")
    return " · ".join(words)


def notes_on(query: QueryView, now: float) -> list[tuple[str, str]]:
    """Why a query does not run as it should: each with the state that it belongs to."""
    name, notes = f"{query.pipeline}.{query.name}", []
    if query.state == "restarting" and query.restarts_at is not None:
        wait = query.restarts_at - now
        when = f"in {age_of(wait)}" if wait > 0 else "now"
        reason = query.restarting_because or "its time has come"
        notes.append(("restarting", f"{name} restarts {when} (restart {query.restarts}): {reason}"))
    for node, away in query.away.items():
        if query.has_ended:
            continue
        said = f"{name} {away.side} `{node}` has been away for {age_of(now - away.at)}"
        known = query.state == "restarting" and away.problem.message in (query.restarting_because or "")
        notes.append(("away", said if known else f"{said}: {away.problem.message}"))
    return notes
