"""Pipelines, checks and runs as text, for a Python prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from penstock.notation.counts import counted
from penstock.notation.durations import to_words
from penstock.screens.query_words import STATE_MARK, lag_of, notes_on, state_of, sum_words

if TYPE_CHECKING:
    from penstock.actions.check import CheckResult, QuerySummary
    from penstock.pipeline.model import Pipeline
    from penstock.problems import Problem
    from penstock.supervise.query_view import Snapshot


def problem_words(problems: Iterable[Problem]) -> list[str]:
    """What is wrong, where, and the fix of each."""
    lines: list[str] = []
    for problem in problems:
        lines.append(f"{problem.severity} {problem.code}  {problem.message}")
        if problem.where and problem.where.file:
            lines.append(f"  {problem.where}")
        lines.append(f"  fix: {problem.fix}")
    return lines


def count_of(problems: Sequence[Problem]) -> str:
    """`1 error, 2 warnings`, or nothing."""
    severities = [problem.severity for problem in problems]
    return ", ".join(counted(severities.count(one), one) for one in ("error", "warning") if one in severities)


def pipeline_text(pipeline: Pipeline, summaries: Sequence[QuerySummary]) -> str:
    """The graph, then each query with its sinks and what it promises."""
    lines = [f"Pipeline {pipeline.name} · latency {pipeline.latency}"]
    lines += [f"  {source.name} ({source.spec.type})" for source in pipeline.sources]
    lines += [f"  {', '.join(step.inputs) or 'nothing'} → {step.name}" for step in pipeline.steps]
    lines += [f"  {sink.of} → {sink.name} ({sink.spec.type})" for sink in pipeline.sinks]
    lines += [f"  query {summary_words(summary)}" for summary in summaries]
    return "\n".join(lines)


def summary_words(summary: QuerySummary) -> str:
    return f"{summary.query} → {summary.sink} · {summary.mode} · {summary.promise} ({summary.reason})"


def check_text(result: CheckResult) -> str:
    """The problems, or what each query promises."""
    named = ", ".join(result.pipelines)
    if result.problems:
        verdict = count_of(result.problems)
        lines = [f"{'✓' if result.ok else '✗'} {named}: {verdict}", *problem_words(result.problems)]
    else:
        lines = [f"✓ {named}: no problems{' (fast: without Spark)' if result.fast else ''}"]
    if result.ok:
        lines += [f"  {summary_words(summary)}" for summary in result.queries]
    return "\n".join(lines)


def run_text(snapshot: Snapshot, now: float) -> str:
    """A line for each query: its state, what it did, how far it is behind; then what is wrong."""
    lines = [f"{counted(len(snapshot.queries), 'query')} · {to_words(snapshot.elapsed_seconds * 1_000)}"]
    for query in snapshot.queries:
        state = state_of(query)
        lag = lag_of(query, now)
        words = [*sum_words(query), *([f"{lag[0]} behind"] if lag else []), query.promise]
        lines.append(f"  {STATE_MARK[state]} {query.pipeline}.{query.name} {state}: {' · '.join(words)}")
    lines += [f"  {STATE_MARK[state]} {said}" for query in snapshot.queries for state, said in notes_on(query, now)]
    lines += problem_words(query.problem for query in snapshot.queries if query.problem)
    return "\n".join(lines)
