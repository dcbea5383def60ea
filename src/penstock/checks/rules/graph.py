"""Names, and what is made from what."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.pipeline.model import Node, Sink, Step
from penstock.problems import did_you_mean
from penstock.transforms.sql import Sql, tables_in
from penstock.transforms.sql_parser import SqlNotUnderstood

_SQL_WORDS = frozenset(
    [
        "all",
        "and",
        "anti",
        "any",
        "as",
        "between",
        "both",
        "by",
        "case",
        "cast",
        "check",
        "column",
        "constraint",
        "create",
        "cross",
        "current_date",
        "current_time",
        "current_timestamp",
        "current_user",
        "distinct",
        "else",
        "end",
        "escape",
        "except",
        "exists",
        "false",
        "fetch",
        "filter",
        "for",
        "foreign",
        "from",
        "full",
        "grant",
        "group",
        "having",
        "in",
        "inner",
        "intersect",
        "into",
        "is",
        "join",
        "lateral",
        "leading",
        "left",
        "like",
        "limit",
        "minus",
        "natural",
        "not",
        "null",
        "offset",
        "on",
        "only",
        "or",
        "order",
        "outer",
        "overlaps",
        "primary",
        "references",
        "right",
        "select",
        "semi",
        "session_user",
        "set",
        "some",
        "table",
        "then",
        "to",
        "trailing",
        "true",
        "union",
        "unique",
        "unknown",
        "unpivot",
        "pivot",
        "user",
        "using",
        "values",
        "when",
        "where",
        "window",
        "with",
        "within",
    ]
)
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@rule(
    "GRAPH001",
    wrong="""
    pipeline: orders
    sources: {orders: {type: rate}}
    steps: {doubled: {sql: SELECT value * 2 AS value FROM ordres}}
    sinks: {out: {of: doubled, type: console}}
    """,
    right="""
    pipeline: orders
    sources: {orders: {type: rate}}
    steps: {doubled: {sql: SELECT value * 2 AS value FROM orders}}
    sinks: {out: {of: doubled, type: console}}
    """,
)
def unknown_input(subject: Subject) -> Iterator[Finding]:
    """A step reads from something that the pipeline does not have.

    Inputs are sources and steps of the same pipeline. A table of a catalog is declared as a source first, so that the
    graph shows it and its guarantee is known.
    """
    nodes = subject.pipeline.nodes
    for step in subject.pipeline.steps:
        for name in step.inputs:
            if name not in nodes:
                where = step.origin.at(*step.spec.keys_of(name))
                if isinstance(step.spec, Sql) and (found := re.search(rf"\b{re.escape(name)}\b", step.spec.sql)):
                    before = step.spec.sql[: found.start()]
                    where = where.inside(before.count("\n") + 1, len(before) - (before.rfind("\n") + 1))
                yield (
                    f"step `{step.name}` reads from `{name}`, which is no source or step{did_you_mean(name, nodes)}",
                    f"name one of: {', '.join(one for one in nodes if one != step.name)};"
                    " a table is declared under `sources` with `type: table`",
                    where,
                )


@rule(
    "GRAPH002",
    wrong="""
    pipeline: circle
    sources: {ticks: {type: rate}}
    steps:
      a: {sql: SELECT * FROM b}
      b: {sql: SELECT * FROM a}
    sinks: {out: {of: a, type: console}}
    """,
    right="""
    pipeline: line
    sources: {ticks: {type: rate}}
    steps:
      a: {sql: SELECT * FROM ticks}
      b: {sql: SELECT * FROM a}
    sinks: {out: {of: b, type: console}}
    """,
)
def cycle(subject: Subject) -> Iterator[Finding]:
    """Steps are made from each other in a circle.

    Rows must come from somewhere. To feed results back into a stream, write them to a table or topic and read that as
    a source.
    """
    steps = {step.name: step for step in subject.pipeline.steps}
    told: set[str] = set()
    for name, step in steps.items():
        circle = _circle_from(name, steps)
        if circle and not told.intersection(circle):
            told.update(circle)
            yield (
                f"these steps go in a circle: {' → '.join((*circle, circle[0]))}",
                "cut one of these reads",
                step.origin.where,
            )


@rule(
    "GRAPH003",
    wrong="""
    pipeline: twice
    sources: {orders: {type: rate}}
    steps: {Orders: {sql: SELECT 1 AS one}}
    sinks: {out: {of: orders, type: console}}
    """,
    right="""
    pipeline: once
    sources: {orders: {type: rate}}
    steps: {paid: {sql: SELECT * FROM orders}}
    sinks: {out: {of: paid, type: console}}
    """,
)
def name_clash(subject: Subject) -> Iterator[Finding]:
    """Two things of one pipeline have the same name.

    Sources and steps are tables of one SQL session, where `Orders` and `orders` are the same name.
    """
    first: dict[str, Node] = {}
    for node in (*subject.pipeline.sources, *subject.pipeline.steps):
        other = first.setdefault(node.name.lower(), node)
        if other is not node:
            yield (
                f"`{node.name}` is already a {type(other).__name__.lower()}, at line {other.origin.where.line}",
                "rename one of the two",
                node.origin.where,
            )


@rule(
    "GRAPH004",
    "warning",
    wrong="""
    pipeline: idle
    sources: {orders: {type: rate}, clicks: {type: rate}}
    sinks: {out: {of: orders, type: console}}
    """,
    right="""
    pipeline: busy
    sources: {orders: {type: rate}}
    sinks: {out: {of: orders, type: console}}
    """,
)
def unused(subject: Subject) -> Iterator[Finding]:
    """A source or step reaches no sink.

    Spark never runs it. Often a sink names the wrong step, or a step was left behind.
    """
    used = {node.name for sink in subject.pipeline.sinks for node in subject.pipeline.upstream(sink.of)}
    for node in (*subject.pipeline.sources, *subject.pipeline.steps):
        if node.name not in used:
            noun = type(node).__name__.lower()
            yield (
                f"nothing is done with {noun} `{node.name}`",
                "feed a sink from it, or remove it",
                node.origin.where,
            )


@rule(
    "GRAPH005",
    wrong="""
    pipeline: words
    sources: {select: {type: rate}}
    sinks: {out: {of: select, type: console}}
    """,
    right="""
    pipeline: words
    sources: {selection: {type: rate}}
    sinks: {out: {of: selection, type: console}}
    """,
)
def reserved_name(subject: Subject) -> Iterator[Finding]:
    """A name means something else in SQL or Python, or is no name there.

    The names of sources and steps are table names in SQL and parameter names in Python, so they are plain words.
    """
    pipeline = subject.pipeline
    for node in (*pipeline.sources, *pipeline.steps, *pipeline.sinks):
        if not _WORD.fullmatch(node.name):
            yield (
                f"`{node.name}` is not a name",
                "use letters, digits and `_`, and start with a letter",
                node.origin.where,
            )
        elif not isinstance(node, Sink) and (node.name.lower() in _SQL_WORDS or keyword.iskeyword(node.name)):
            yield (
                f"`{node.name}` is a reserved word of SQL or Python",
                f"call it `{node.name}_rows`, or say more",
                node.origin.where,
            )


@rule(
    "GRAPH006",
    wrong="""
    pipeline: lost
    sources: {orders: {type: rate}}
    sinks: {out: {of: order, type: console}}
    """,
    right="""
    pipeline: found
    sources: {orders: {type: rate}}
    sinks: {out: {of: orders, type: console}}
    """,
)
def sink_of_nothing(subject: Subject) -> Iterator[Finding]:
    """A sink is fed from something that the pipeline does not have.

    Sinks are fed from sources and steps of the same pipeline. Without one there are no rows to write.
    """
    nodes = subject.pipeline.nodes
    for sink in subject.pipeline.sinks:
        if sink.of not in nodes:
            yield (
                f"sink `{sink.name}` is fed from `{sink.of}`, which is no source or step{did_you_mean(sink.of, nodes)}",
                f"name one of: {', '.join(nodes)}",
                sink.origin.at("of"),
            )


@rule(
    "GRAPH007",
    wrong="""
    pipeline: misnamed
    sources: {orders: {type: rate}}
    sinks: {out: {of: orders, type: console}}
    queries: {out: {trigger: 10 seconds}}
    """,
    right="""
    pipeline: named
    sources: {orders: {type: rate}}
    sinks: {out: {of: orders, type: console}}
    queries: {orders: {trigger: 10 seconds}}
    """,
)
def settings_of_no_query(subject: Subject) -> Iterator[Finding]:
    """Settings are given for a query that does not exist.

    A query is named after the step, or source, that feeds its sink. Settings under another name would do nothing.
    """
    queries = [query.name for query in subject.pipeline.queries]
    for name in subject.pipeline.settings:
        if name not in queries:
            origin = subject.pipeline.settings_origins.get(name, subject.pipeline.origin)
            yield (
                f"there is no query `{name}`{did_you_mean(name, queries)}",
                f"name one of: {', '.join(queries)}",
                origin.where,
            )


@rule(
    "SQL001",
    "warning",
    wrong="""
    pipeline: unread
    sources: {orders: {type: rate}}
    steps: {doubled: {sql: SELEC value FROM orders}}
    sinks: {out: {of: doubled, type: console}}
    """,
    right="""
    pipeline: read
    sources: {orders: {type: rate}}
    steps: {doubled: {sql: SELECT value FROM orders}}
    sinks: {out: {of: doubled, type: console}}
    """,
)
def sql_not_understood(subject: Subject) -> Iterator[Finding]:
    """The quick parser cannot read a step's SQL.

    It knows most of Spark's SQL, not all. Spark's own parser has the last word: `penstock check` without `--fast`.
    """
    for step in subject.pipeline.steps:
        if isinstance(step.spec, Sql):
            try:
                tables_in(step.spec.sql)
            except SqlNotUnderstood as error:
                where = step.origin.at("sql").inside(error.line, error.column)
                yield (
                    f"the SQL of `{step.name}` is not understood: {error}",
                    "run `penstock check`: Spark decides",
                    where,
                )


def _circle_from(start: str, steps: dict[str, Step]) -> tuple[str, ...]:
    """The steps on a way from `start` back to it, or nothing."""
    ways: list[tuple[str, ...]] = [(start,)]
    seen: set[str] = set()
    while ways:
        way = ways.pop()
        for name in steps[way[-1]].inputs:
            if name == start:
                return way[::-1]
            if name in steps and name not in seen:
                seen.add(name)
                ways.append((*way, name))
    return ()
