"""Pipelines, checks and runs as HTML for notebooks: one element, no script, no file from elsewhere.

Every text of a user is escaped. Colours are those of the page, or readable on light and on dark.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from penstock.notation.counts import counted
from penstock.notation.durations import to_words
from penstock.screens.query_words import NONE, STATE_MARK, lag_words, notes_on, state_of, watermark_of
from penstock.screens.reprs import count_of

if TYPE_CHECKING:
    from penstock.actions.check import CheckResult, QuerySummary
    from penstock.pipeline.model import Pipeline
    from penstock.problems import Problem
    from penstock.supervise.query_view import QueryView, Snapshot

_GREEN, _YELLOW, _RED, _BLUE = "#1a9850", "#b8860b", "#d73027", "#3b7dd8"
_LINE = "rgba(128,128,128,.35)"
_COLOUR = {
    "running": _GREEN, "waiting": _GREEN, "done": _GREEN, "away": _YELLOW, "restarting": _YELLOW,
    "stopping": _YELLOW, "stopped": _YELLOW, "failed": _RED,
}  # fmt: skip
_CELL = "padding:2px 10px 2px 0;text-align:{align};white-space:nowrap;border:0;background:none;color:inherit"
_CHARACTER, _ROW, _BOX, _GAP = 7.4, 52, 36, 46
"""In pixels: the width of a character, from one node to the next below, a node's height, between two columns."""


def escaped(text: object) -> str:
    return html.escape(str(text), quote=True)


def pipeline_html(pipeline: Pipeline, summaries: Sequence[QuerySummary]) -> str:
    """The graph, then each query with its sink and what it promises."""
    rows = [
        [summary.query, summary.sink, summary.mode, f"{summary.promise} ({summary.reason})"] for summary in summaries
    ]
    return _element(
        f"<b>{escaped(pipeline.name)}</b> {_dim(f'latency {pipeline.latency}')}",
        f"<div>{escaped(pipeline.description)}</div>" if pipeline.description else "",
        _graph(pipeline),
        _table(("query", "sink", "mode", "promise"), [[escaped(cell) for cell in row] for row in rows]),
    )


def check_html(result: CheckResult) -> str:
    colour, mark = (_GREEN, "✓") if result.ok else (_RED, "✗")
    verdict = count_of(result.problems) or "no problems"
    note = " (fast: without Spark)" if result.fast else ""
    rows = [
        [escaped(cell) for cell in (query.query, query.sink, query.mode, f"{query.promise} ({query.reason})")]
        for query in result.queries
    ]
    return _element(
        f'<b style="color:{colour}">{mark}</b> <b>{escaped(", ".join(result.pipelines))}</b> '
        f"{_dim(escaped(verdict + note))}",
        problems_html(result.problems),
        _table(("query", "sink", "mode", "promise"), rows) if result.ok else "",
    )


def problems_html(problems: Iterable[Problem]) -> str:
    return "".join(_problem(problem) for problem in problems)


def run_html(snapshot: Snapshot, now: float) -> str:
    """All queries of a run, with why those that are not well are so."""
    queries = snapshot.queries
    some = {name: count for name, count in _MISHAPS.items() if any(map(count, queries))}
    headers = ("query", "state", "behind", "batches", "rows in", "rows out", *some, "watermark (UTC)", "promise")
    notes = [
        f'<div><span style="color:{_COLOUR[state]}">{STATE_MARK[state]}</span> {escaped(said)}</div>'
        for query in queries
        for state, said in notes_on(query, now)
    ]
    return _element(
        _dim(f"{counted(len(queries), 'query')} · {to_words(snapshot.elapsed_seconds * 1_000)}"),
        _table(headers, [_run_row(query, some, now) for query in queries], left=("query", "state", "promise")),
        *notes,
        problems_html(query.problem for query in queries if query.problem),
    )


_MISHAPS: Mapping[str, Callable[[QueryView], int]] = {
    "bad": lambda query: query.bad_rows,
    "late": lambda query: query.late_rows + query.late_groups,
    "dead letters": lambda query: sum(query.set_aside.values()),
    "restarts": lambda query: query.restarts,
}
"""Columns that are there when there are some."""


def _run_row(query: QueryView, some: Mapping[str, Callable[[QueryView], int]], now: float) -> list[str]:
    state = state_of(query)
    colour = _COLOUR.get(state, "inherit")
    return [
        f"{_dim(escaped(query.pipeline) + '.')}<b>{escaped(query.name)}</b>",
        f'<span style="color:{colour}">{STATE_MARK[state]} {state}</span>',
        escaped(lag_words(query, now)),
        f"{query.batches:,}",
        f"{query.rows_in + query.under_way:,}",
        f"{query.rows_out:,}",
        *(f"{count(query):,}" if count(query) else NONE for count in some.values()),
        escaped(watermark_of(query)),
        escaped(query.promise),
    ]


def _problem(problem: Problem) -> str:
    colour = _RED if problem.severity == "error" else _YELLOW
    place = f"<div>{_dim(escaped(problem.where))}</div>" if problem.where and problem.where.file else ""
    title = f'<b style="color:{colour}">{problem.severity} {escaped(problem.code)}</b>'
    return (
        f'<div style="border-left:3px solid {colour};padding:2px 0 2px 8px;margin:6px 0">'
        f"<div>{title} {escaped(problem.message)}</div>"
        f'{place}<div><b style="color:{_GREEN}">fix:</b> {escaped(problem.fix)}</div></div>'
    )


def _element(*parts: str) -> str:
    style = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px;line-height:1.5;overflow-x:auto"
    return f'<div style="{style}">{"".join(f"<div>{part}</div>" for part in parts if part)}</div>'


def _dim(text: str) -> str:
    return f'<span style="opacity:.65">{text}</span>'


def _table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str] = ("query", "sink", "mode", "promise")
) -> str:
    aligned = [_CELL.format(align="left" if header in left else "right") for header in headers]
    head = "".join(
        f'<th style="{style};font-weight:normal;opacity:.65">{header}</th>'
        for header, style in zip(headers, aligned, strict=True)
    )
    body = "".join(f'<tr style="background:none">{"".join(_cells(row, aligned))}</tr>' for row in rows)
    return f'<table style="border-collapse:collapse;margin:6px 0"><tr style="background:none">{head}</tr>{body}</table>'


def _cells(row: Sequence[str], aligned: Sequence[str]) -> Iterable[str]:
    return (f'<td style="{style}">{cell}</td>' for cell, style in zip(row, aligned, strict=True))


def _graph(pipeline: Pipeline) -> str:
    """Sources on the left, sinks on the right, each node right of all that it is made from."""
    sinks = {f"sink {sink.name}": sink for sink in pipeline.sinks}
    inputs: dict[str, tuple[str, ...]] = {source.name: () for source in pipeline.sources}
    inputs |= {step.name: step.inputs for step in pipeline.steps}
    inputs |= {key: (sink.of,) for key, sink in sinks.items()}
    kinds = {source.name: (source.spec.type, _BLUE) for source in pipeline.sources}
    kinds |= {step.name: ("step", "currentColor") for step in pipeline.steps}
    kinds |= {key: (sink.spec.type, _GREEN) for key, sink in sinks.items()}
    columns: dict[int, list[str]] = {}
    for key in inputs:
        columns.setdefault(_depth(key, inputs), []).append(key)
    labels = {key: sinks[key].name if key in sinks else key for key in inputs}
    places: dict[str, tuple[float, float, float]] = {}
    left = 1.0
    for depth in sorted(columns):
        width = max(_cells_of(labels[key], kinds[key][0]) for key in columns[depth]) * _CHARACTER + 20
        for row, key in enumerate(columns[depth]):
            places[key] = (left, row * _ROW + 1.0, width)
        left += width + _GAP
    height = max(map(len, columns.values()), default=0) * _ROW
    edges = "".join(_edge(places[one], places[key]) for key, each in inputs.items() for one in each if one in places)
    nodes = "".join(_node(labels[key], *kinds[key], places[key]) for key in inputs)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{left - _GAP + 1:.0f}" height="{height}"'
        f' style="max-width:none;margin:6px 0" font-family="inherit" font-size="12">{edges}{nodes}</svg>'
    )


def _depth(key: str, inputs: Mapping[str, Sequence[str]]) -> int:
    """The longest way from a source; a way that comes back to itself is cut."""
    known: dict[str, int] = {}

    def depth_of(one: str, above: frozenset[str]) -> int:
        if one not in known:
            behind = [depth_of(each, above | {one}) for each in inputs.get(one, ()) if each not in above | {one}]
            known[one] = 1 + max(behind, default=-1)
        return known[one]

    return depth_of(key, frozenset())


def _cells_of(*texts: str) -> int:
    return max(sum(2 if east_asian_width(one) in "WF" else 1 for one in text) for text in texts)


def _edge(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    x, y, to_x, to_y = start[0] + start[2], start[1] + _BOX / 2, end[0], end[1] + _BOX / 2
    bend = max(_GAP / 2, (to_x - x) / 2)
    path = f"M{x:.0f},{y:.0f} C{x + bend:.0f},{y:.0f} {to_x - bend:.0f},{to_y:.0f} {to_x:.0f},{to_y:.0f}"
    return f'<path d="{path}" fill="none" stroke="{_LINE}" stroke-width="1.5"/>'


def _node(label: str, kind: str, colour: str, place: tuple[float, float, float]) -> str:
    x, y, width = place
    small = 'fill="currentColor" opacity=".65" font-size="11"'
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{_BOX}" rx="6" fill="none" stroke="{colour}"/>'
        f'<text x="{x + 10:.0f}" y="{y + 16:.0f}" fill="currentColor" font-weight="bold">{escaped(label)}</text>'
        f'<text x="{x + 10:.0f}" y="{y + 30:.0f}" {small}>{escaped(kind)}</text>'
    )
