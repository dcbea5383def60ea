"""Bad records: functions, expectations, and where dead letters go."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.dead_letters.as_step import query_name
from penstock.dead_letters.bad_records import DECODED, FUTURE
from penstock.dead_letters.leaving import puts_aside
from penstock.transforms.splice import FUNCTION_FIX, Misplaced, with_hidden
from penstock.transforms.sql import Sql


@rule(
    "FUNCTION001",
    wrong="""
    pipeline: scored
    sources: {ticks: {type: rate}}
    functions: {risk: {python: scores:risk, returns: DOUBLE}}
    steps: {risky: {sql: SELECT value FROM ticks WHERE risk(value) > 1}}
    sinks: {out: {of: risky, type: console}}
    """,
    right="""
    pipeline: scored
    sources: {ticks: {type: rate}}
    functions: {risk: {python: scores:risk, returns: DOUBLE}}
    steps:
      scored: {sql: "SELECT value, risk(value) AS risk FROM ticks"}
      risky: {sql: SELECT value FROM scored WHERE risk > 1}
    sinks: {out: {of: risky, type: console}}
    """,
)
def function_where_errors_are_lost(subject: Subject) -> Iterator[Finding]:
    """A declared function is called where its exceptions would be lost.

    A row on which a function raises is put aside. In WHERE, GROUP BY or a subquery the row is gone before that can be
    told, so declared functions stand in the SELECT list of a step that keeps rows as they are.
    """
    for step in subject.pipeline.steps:
        if not isinstance(step.spec, Sql) or not subject.pipeline.guarded:
            continue
        try:
            with_hidden(step.spec.sql, subject.pipeline.guarded)
        except Misplaced as misplaced:
            yield (
                f"step `{step.name}`: {misplaced}",
                FUNCTION_FIX,
                step.origin.at("sql").inside(misplaced.line, misplaced.column),
            )


@rule(
    "RECORD004",
    wrong="""
    pipeline: named
    sources: {ticks: {type: rate, expect: {small: {that: value < 9, otherwise: dead_letter}}}}
    steps: {ticks_dead_letters: {sql: SELECT * FROM ticks}}
    sinks: {out: {of: ticks_dead_letters, type: console}}
    """,
    right="""
    pipeline: named
    sources: {ticks: {type: rate, expect: {small: {that: value < 9, otherwise: dead_letter}}}}
    steps: {good_ticks: {sql: SELECT * FROM ticks}}
    sinks: {out: {of: good_ticks, type: console}}
    """,
)
def name_of_dead_letters_is_taken(subject: Subject) -> Iterator[Finding]:
    """A step has the name of the query that carries another's dead letters.

    Dead letters of `orders` leave through a query `orders_dead_letters`, with a checkpoint under that name.
    """
    steps = {step.name: step for step in subject.pipeline.steps if not subject.pipeline.puts_aside(step.name)}
    for node in subject.pipeline.nodes.values():
        taken = steps.get(query_name(node.name))
        if taken is not None and puts_aside(node, subject.pipeline):
            yield (
                f"`{taken.name}` is the name of the query for the dead letters of `{node.name}`",
                "rename the step",
                taken.origin.where,
            )


@rule(
    "EXPECT002",
    wrong="""
    pipeline: counted
    sources: {ticks: {type: rate}}
    steps:
      counts:
        sql: SELECT value % 3 AS key, count(*) AS n FROM ticks GROUP BY value % 3
        expect: {many: {that: n > 1}}
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {mode: complete}}
    """,
    right="""
    pipeline: counted
    sources: {ticks: {type: rate, expect: {positive: {that: value >= 0}}}}
    steps:
      counts:
        sql: SELECT value % 3 AS key, count(*) AS n FROM ticks GROUP BY value % 3
    sinks: {out: {of: counts, type: console}}
    queries: {counts: {mode: complete}}
    """,
)
def expectation_on_groups(subject: Subject) -> Iterator[Finding]:
    """A step that groups rows has expectations.

    A group changes from batch to batch: what fails now may hold later, and a row that was put aside would come again.
    """
    for step in subject.pipeline.steps:
        if not isinstance(step.spec, Sql) or not _groups(step.spec.sql):
            continue
        limited = step.spec.watermark is not None and step.spec.watermark.max_future is not None
        for keys in [("expect",)] * bool(step.spec.expect) + [("watermark", "max_future")] * limited:
            yield (
                f"step `{step.name}` groups rows, so it cannot have `{keys[-1]}`",
                f"set `{keys[-1]}` on a source or a step before it",
                step.origin.at(*keys),
            )


def _groups(sql: str) -> bool:
    return "group by" in " ".join(sql.lower().split())


@rule(
    "EXPECT003",
    wrong="""
    pipeline: timed
    sources: {ticks: {type: rate, expect: {max_future: {that: timestamp < now(), otherwise: drop}}}}
    sinks: {out: {of: ticks, type: console}}
    """,
    right="""
    pipeline: timed
    sources: {ticks: {type: rate, watermark: {column: timestamp, delay: 1 minute, max_future: 1 hour}}}
    sinks: {out: {of: ticks, type: console}}
    """,
)
def expectation_named_as_a_check(subject: Subject) -> Iterator[Finding]:
    """An expectation has the name of a check that Penstock makes itself.

    Rows that fail a check are counted under its name: `decoded` for records that cannot be decoded, `max_future` for
    rows that are too far ahead. Two checks under one name could not be told apart.
    """
    for node in subject.pipeline.nodes.values():
        for name in node.spec.expect:
            if name in (DECODED, FUTURE):
                yield (
                    f"`{name}` is the name of a check of its own",
                    "give the expectation another name",
                    node.origin.at("expect", name),
                )
