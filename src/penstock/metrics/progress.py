"""Spark's progress of a batch → facts."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from penstock.facts.observed import ProgressFacts, RecordTimes

_BEHIND = "avgOffsetsBehindLatest"
_AGGREGATIONS = ("stateStoreSave", "sessionWindowStateStoreSaveExec")
"""The operators that drop groups. The others see rows."""


def from_spark(
    query: str, progress: Mapping[str, Any], observation: str, of_checks: str, of_times: str
) -> ProgressFacts:
    """One batch, as facts. `observation` names the metric that counts the rows handed to the sinks.

    Metrics whose name starts with `of_checks` count what a node's checks found; the node's name follows. Those with
    `of_times` tell how late the records of a source came.
    """
    sources: list[Mapping[str, Any]] = progress.get("sources") or []
    operators: list[Mapping[str, Any]] = progress.get("stateOperators") or []
    metrics: Mapping[str, Mapping[str, Any]] = progress.get("observedMetrics") or {}
    observed = metrics.get(observation) or {}
    watermark = (progress.get("eventTime") or {}).get("watermark")
    return ProgressFacts(
        query=query,
        batch=int(progress.get("batchId", -1)),
        at=str(progress.get("timestamp", "")),
        rows_in=int(progress.get("numInputRows") or 0),
        rows_out=_rows_out(observed, progress.get("sink") or {}),
        rows_in_per_second=_rate(progress.get("inputRowsPerSecond")),
        rows_processed_per_second=_rate(progress.get("processedRowsPerSecond")),
        duration_ms=int((progress.get("durationMs") or {}).get("triggerExecution") or 0),
        # Spark starts every watermark at 1970: none has been seen yet.
        watermark=None if watermark is None or watermark.startswith("1970-") else watermark,
        late_rows=_late(operators, of_groups=False),
        late_groups=_late(operators, of_groups=True),
        state_rows=sum(int(operator.get("numRowsTotal") or 0) for operator in operators) if operators else None,
        behind=_behind(sources),
        checks={
            name.removeprefix(of_checks): dict(counts) for name, counts in metrics.items() if name.startswith(of_checks)
        },
        read={
            str(source.get("description")): (int(source.get("numInputRows") or 0), str(source.get("endOffset")))
            for source in sources
        },
        times={
            name.removeprefix(of_times): times
            for name, told in metrics.items()
            if name.startswith(of_times) and (times := _times(told)) is not None
        },
        run=str(progress.get("runId") or ""),
        raw=progress,
    )


def pause_ms(before: ProgressFacts | None, after: ProgressFacts) -> int | None:
    """How long no record came into Spark's hands between two batches, where one follows the other without a restart.

    It is the pause of Spark only while records flow: where none was sent, the silence counts as well.
    """
    follows = before is not None and (before.run, before.batch + 1) == (after.run, after.batch)
    if before is None or not follows or not before.times or not after.times:
        return None
    last = max(one.last_at_ms for one in before.times.values())
    return max(0, min(one.first_at_ms for one in after.times.values()) - last)


def _times(told: Mapping[str, Any]) -> RecordTimes | None:
    """None for a batch without a record that has a time."""
    if not told.get("records"):
        return None
    bins = [(float(one["x"]), float(one["y"])) for one in told["bins"]]
    points = (_percentile(bins, share) for share in (0.5, 0.95, 0.99))
    return RecordTimes(*points, *(int(told[name]) for name in ("max", "records", "first", "last")))


def _percentile(bins: list[tuple[float, float]], share: float) -> int:
    """The smallest value of ordered bins, each with a count, that at least this share does not exceed."""
    wanted = share * sum(count for _, count in bins)
    counts = accumulate(count for _, count in bins)
    return round(next(value for (value, _), count in zip(bins, counts, strict=True) if count >= wanted))


def _rows_out(observed: Mapping[str, int], sink: Mapping[str, Any]) -> int | None:
    """As Penstock counted them, or the sink itself; Spark says -1 for a sink that does not count."""
    written = int(sink.get("numOutputRows", -1))
    return observed.get("rows", written if written >= 0 else None)


def _late(operators: list[Mapping[str, Any]], of_groups: bool) -> int:
    return sum(
        int(operator.get("numRowsDroppedByWatermark") or 0)
        for operator in operators
        if (operator.get("operatorName") in _AGGREGATIONS) is of_groups
    )


def _rate(value: Any) -> float:
    # Spark divides by the time between triggers, which can be nothing: NaN and infinity are no rates.
    return float(value) if isinstance(value, int | float) and 0 <= value < float("inf") else 0.0


def _behind(sources: list[Mapping[str, Any]]) -> float | None:
    """How many records the sources are behind, where they say so."""
    said = [float(source["metrics"][_BEHIND]) for source in sources if _BEHIND in (source.get("metrics") or {})]
    return sum(said) if said else None
