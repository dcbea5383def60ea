"""Results as plain rows of text, and as a picture. Pure: the terminal and the files only show what is made here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from xml.sax.saxutils import escape

from penstock.bench.measure import Ratio
from penstock.bench.results import Line, Run, Summary

HEADINGS = ("", "p50", "p95", "p99", "p99.9", "max", "rows/s", "CPU", "MB", "first", "rounds")
UNITS = "p50 to max: milliseconds · CPU: seconds for a million records · first: seconds until the first row"
_FIGURES = {"p50": "p50", "p95": "p95", "p99": "p99", "rate": "rows/s", "cpu": "CPU"}

COLOURS = {
    "floor": "#6b7280",
    "pyspark": "#dc2626",
    "naive": "#ea580c",
    "tuned": "#ca8a04",
    "penstock": "#2563eb",
    "realtime": "#0891b2",
    "flink": "#7c3aed",
    "flink-tuned": "#db2777",
}
"""The same for a contender in every plot, whoever else takes part."""
_OTHER, _DARK, _GREY, _PALE = "#111827", "#111827", "#6b7280", "#e5e7eb"
_WIDTH, _HEIGHT = 960, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 410, 78, 50
_BESIDE, _ROW, _COLUMN = _WIDTH - _RIGHT + 25, 22, 54
"""Where the figures beside the plot begin, how high a row of them is and how wide a column."""


def cells(line: Line) -> tuple[str, ...]:
    """A contender's row of the table, as `HEADINGS` names it."""
    points = [three_digits(value) for value in line.latency.points().values()] if line.latency else ["–"] * 5
    return (
        line.contender,
        *points,
        f"{line.rows_per_second:,.0f}",
        three_digits(line.cpu_seconds_per_million),
        f"{line.peak_memory_mb:,.0f}",
        f"{line.first_row_seconds:.1f}",
        str(line.rounds),
    )


def three_digits(value: float) -> str:
    """Three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def comparison_texts(summary: Summary) -> list[str]:
    """A line for each of ours and each other one: `penstock / tuned: p50 1.02 (0.97 to 1.08) · …; 3 rounds, 75%`."""
    texts = []
    for ours, theirs in dict.fromkeys((one.ours, one.theirs) for one in summary.comparisons):
        found = [one for one in summary.comparisons if (one.ours, one.theirs) == (ours, theirs)]
        figures = " · ".join(f"{_FIGURES[one.figure]} {_ratio_text(one.ratio)}" for one in found)
        ratio = found[0].ratio
        rounds = "1 round" if ratio.rounds == 1 else f"{ratio.rounds} rounds, {ratio.confidence:.0%}"
        texts.append(f"{ours} / {theirs}: {figures}; {rounds}")
    return texts


def _ratio_text(ratio: Ratio) -> str:
    median, low, high = (
        f"{one:,.0f}" if one >= 1_000 else f"{one:.3g}" for one in (ratio.median, ratio.low, ratio.high)
    )
    return f"{median} ({low} to {high})" if ratio.rounds > 1 else median


def further_texts(summary: Summary) -> list[str]:
    """What is asked beside: a micro-batch's own log; in some workloads a pause, or the time to go on after a crash."""
    figures: dict[str, Callable[[Line], str | None]] = {
        "until it went on after the crash": lambda line: _with_unit(line.recovery_seconds, "{:.1f} s".format),
        "longest time without an answer": lambda line: _with_unit(line.pause_milliseconds, _milliseconds),
        "walCommit + commitOffsets of a batch": lambda line: _with_unit(line.log_milliseconds, _milliseconds),
    }
    texts = {
        name: [f"{line.contender} {text}" for line in summary.lines if (text := figure(line)) is not None]
        for name, figure in figures.items()
    }
    return [f"{name}: {', '.join(told)}" for name, told in texts.items() if told]


def _with_unit(value: float | None, told: Callable[[float], str]) -> str | None:
    return None if value is None else told(value)


def _milliseconds(value: float) -> str:
    return f"{three_digits(value)} ms"


def notes(summary: Summary) -> list[str]:
    """What is left out of a table, and why."""
    dropped = ", ".join(map(str, summary.dropped_rounds))
    return [
        *(f"{name} takes no part: {why}" for name, why in summary.skipped),
        *(f"{failure_text(run)}; it does not count" for run in summary.failed),
        *([f"left out, for the floor drifted: round {dropped}"] if dropped else []),
    ]


def failure_text(run: Run) -> str:
    """In one line. What the process said is below it in the problem, and was shown when the run failed."""
    first = (run.problem or "").partition("\n")[0].removesuffix("; it said:")
    return f"{run.contender} in round {run.round}: {first}"


def plot(summary: Summary) -> str | None:
    """An SVG of latency percentiles, one line for each contender, on a log axis, with the figures beside it.

    None where there are no latencies.
    """
    series = [(line.contender, line.latency.points()) for line in summary.lines if line.latency]
    if not series:
        return None
    low, high = decades(value for _, points in series for value in points.values())
    names = [*series[0][1]]
    parts = [
        _text(_LEFT, 26, summary.workload, size=16, weight="bold"),
        _text(_LEFT, 46, summary.title),
        _text(_LEFT, _TOP - 10, "milliseconds, log scale", colour=_GREY, size=11),
        *_grid(low, high),
        *(_text(_x(index, len(names)), _HEIGHT - 25, name, "middle") for index, name in enumerate(names)),
        *_heads(names),
    ]
    for number, (name, points) in enumerate(series, 1):
        colour, values = COLOURS.get(name, _OTHER), [*points.values()]
        parts += [*_curve(name, values, colour, low, high), *_row(name, values, colour, _TOP + _ROW * number)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif">\n'
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def decades(values: Iterable[float]) -> tuple[int, int]:
    """The powers of ten that enclose all values."""
    known = [max(value, 0.001) for value in values]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    return low, max(high, low + 1)


def _grid(low: int, high: int) -> list[str]:
    parts = []
    for power in range(low, high + 1):
        y = _y(10**power, low, high)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}" stroke="{_PALE}"/>')
        parts.append(_text(_LEFT - 8, y + 4, f"{10.0**power:,.9g}", anchor="end"))
    return parts


def _curve(name: str, values: Sequence[float], colour: str, low: int, high: int) -> list[str]:
    places = [(_x(index, len(values)), _y(value, low, high)) for index, value in enumerate(values)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = [
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}">'
        f"<title>{escape(name)}: {three_digits(value)} ms</title></circle>"
        for (x, y), value in zip(places, values, strict=True)
    ]
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots]


def _heads(names: Sequence[str]) -> list[str]:
    return [_text(_column(index), _TOP + 4, name, "end", _GREY) for index, name in enumerate(names)]


def _row(name: str, values: Sequence[float], colour: str, y: float) -> list[str]:
    """A contender's colour, its name and its figures."""
    figures = [_text(_column(index), y + 4, three_digits(value), "end") for index, value in enumerate(values)]
    line = f'<line x1="{_BESIDE}" y1="{y}" x2="{_BESIDE + 16}" y2="{y}" stroke="{colour}" stroke-width="3"/>'
    return [line, _text(_BESIDE + 24, y + 4, name), *figures]


def _column(index: int) -> float:
    """Where the figures of a column end."""
    return _BESIDE + 88 + _COLUMN * (index + 1)


def _x(index: int, count: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (index + 0.5) / count


def _y(value: float, low: int, high: int) -> float:
    share = (math.log10(max(value, 0.001)) - low) / (high - low)
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _text(
    x: float, y: float, text: str, anchor: str = "start", colour: str = _DARK, size: int = 12, weight: str = "normal"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}"'
        f' fill="{colour}">{escape(text)}</text>'
    )
