"""What Spark says is wrong, as a Problem at the user's line."""

from __future__ import annotations

import re
from collections.abc import Mapping

from penstock.engine.failure_problems import LOG, of_record
from penstock.facts.raised import record_in
from penstock.pipeline.model import Query, Sink, Source, Step
from penstock.problems import Problem, Where
from penstock.spark_internals import java_message, thrown_by
from penstock.transforms.python import Python
from penstock.transforms.sql import Sql
from penstock.user_code import line_of

_LINE_POS = re.compile(r"\(?line (\d+),? pos (\d+)\)?")
_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\]\s*")
_NOISE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_FIXES = {
    "UNRESOLVED_COLUMN": "name a column of the step's inputs; `penstock show INPUT` lists the columns of an input",
    "TABLE_OR_VIEW_NOT_FOUND": "name a source or step of the pipeline, or declare the table under `sources:`",
    "PARSE_SYNTAX_ERROR": "correct the SQL at that place",
    "PARSE_EMPTY_STATEMENT": "write a SELECT",
    "UNRESOLVED_ROUTINE": "use a function of Spark's SQL, or declare your own under `functions:`",
    "PATH_NOT_FOUND": "make the folder with `mkdir -p`, or correct `path`",
    "UNABLE_TO_INFER_SCHEMA": "put a file there first, or give the columns as DDL: `schema: id BIGINT, at TIMESTAMP`",
    "DATATYPE_MISMATCH": "cast one side to the type of the other: `CAST(x AS BIGINT)`",
    "STREAMING_OUTPUT_MODE": "choose another `mode` for the query, or add a `watermark` to its source",
    "DATA_SOURCE_NOT_FOUND": "use a format that Spark knows, or add its jar under `spark: {spark.jars: …}`",
    "UNSUPPORTED_DATATYPE": "write the schema as DDL: `id BIGINT, at TIMESTAMP`",
    "MISSING_AGGREGATION": "add the column to GROUP BY, or put it into an aggregate such as `any_value(…)`",
    "GROUP_BY_AGGREGATE": "take the aggregate out of GROUP BY",
    "AMBIGUOUS_REFERENCE": "write the table before the column: `orders.id` in place of `id`",
    "COLUMN_ALREADY_EXISTS": "give one of the two columns another name with `AS`",
    "NUM_COLUMNS_MISMATCH": "select the same number of columns on both sides",
    "INCOMPATIBLE_COLUMN_TYPE": "cast the columns of one side, so that both sides have the same types",
    "WRONG_NUM_ARGS": "give the function the number of arguments that the message names",
    "INVALID_SCHEMA": "write the schema as DDL: `id BIGINT, at TIMESTAMP`",
    "TABLE_OR_VIEW_ALREADY_EXISTS": "name another table, or drop this one",
    "SCHEMA_NOT_FOUND": "make the schema with `CREATE SCHEMA`, or correct its name in `table`",
}


def while_building(error: Exception, node: Source | Step, nodes: Mapping[str, Source | Step] | None = None) -> Problem:
    """What went wrong when the rows of a source or a step were declared to Spark, or looked at."""
    if not is_spark_error(error):
        return _in_user_code(error, node)
    if nodes and (record := record_in(thrown_by(error))) and record.node in nodes:
        return of_record(record, nodes[record.node])
    where = _place(error, node)
    code = {"Source": "SPARK001", "Step": "SPARK002"}[type(node).__name__]
    noun = type(node).__name__.lower()
    message = f"Spark refuses {noun} `{node.name}`: {message_of(error)}"
    return Problem(code, message, fix_for(error, _at_node(node)), where)


def while_starting(error: Exception, sink: Sink) -> Problem:
    """What went wrong when a query was started on its sink."""
    otherwise = f"change the settings of the sink `{sink.name}`, or the columns that `{sink.of}` gives it"
    message = f"Spark refuses sink `{sink.name}`: {message_of(error)}"
    return Problem("SPARK003", message, fix_for(error, otherwise), sink.origin.where)


def unsupported(error: Exception, where: Where, query: str) -> Problem:
    """Spark's own verdict on a query that it can read but not stream."""
    otherwise = f"take this operation out of the steps of `{query}`, or choose another `mode` for the query"
    return Problem("SPARK004", f"Spark cannot stream `{query}`: {message_of(error)}", fix_for(error, otherwise), where)


def is_spark_error(error: Exception) -> bool:
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def condition_of(error: Exception) -> str:
    """Spark's name for the error, such as `UNRESOLVED_COLUMN.WITH_SUGGESTION`."""
    condition = getattr(error, "getCondition", None)
    return (condition() if condition else None) or ""


def message_of(error: Exception) -> str:
    """The first sentence of what Spark said, without its codes, plan and trace."""
    said = java_message(error) or str(error)
    text = _CLASS.sub("", said.strip())
    text = _NOISE.sub("", text).split("\n\n")[0].split("JVM stacktrace")[0].strip()
    first = text.splitlines()[0] if text else type(error).__name__
    return first.rstrip(".;")


def fix_for(error: Exception, otherwise: str) -> str:
    """An edit for the conditions that are known; `otherwise` for all others."""
    condition = condition_of(error)
    if condition == "UNRESOLVED_COLUMN.WITH_SUGGESTION":
        parameters = error.getMessageParameters() or {}  # type: ignore[attr-defined] # an error of PySpark's has them
        nearest, name = parameters.get("proposal", "").partition(", ")[0], parameters.get("objectName")
        if nearest and name:
            return f"write {nearest} in place of {name}"
    return next((fix for start, fix in _FIXES.items() if condition.startswith(start)), otherwise)


def _at_node(node: Source | Step) -> str:
    part = "SQL" if isinstance(node.spec, Sql) else "function" if isinstance(node.spec, Python) else "settings"
    noun = "source" if isinstance(node, Source) else "step"
    return f"change the {part} of {noun} `{node.name}`, and try it with `penstock show {node.name}`"


def _place(error: Exception, node: Source | Step) -> Where:
    if isinstance(node, Step) and isinstance(node.spec, Sql):
        text = node.origin.at("sql")
        found = _LINE_POS.search(str(error))
        return text.inside(int(found[1]), int(found[2])) if found else text
    if isinstance(node, Step) and isinstance(node.spec, Python):
        return line_of(error) or node.origin.at("python")
    condition = condition_of(error)
    if condition.startswith("PATH_NOT_FOUND"):
        return node.origin.at("path")
    if condition.startswith(("PARSE", "UNSUPPORTED_DATATYPE", "UNSUPPORTED_TYPED_LITERAL")):
        schema = ("format", "schema") if node.origin.at("schema") == node.origin.where else ("schema",)
        return node.origin.at(*schema)
    return node.origin.where


def _in_user_code(error: Exception, node: Source | Step) -> Problem:
    where = line_of(error) or node.origin.at("python")
    message = f"step `{node.name}` fails: {type(error).__name__}: {error}"
    return Problem(
        "SPARK005", message, f"correct the function at that line, and try it with `penstock show {node.name}`", where
    )


def spark_is_gone(query: Query) -> Problem:
    """The JVM has died under a running query: killed, or out of memory."""
    message = f"Spark has died, and query `{query.name}` with it"
    fix = (
        f"read the last lines of {LOG}. If they name an OutOfMemoryError, or nothing, write"
        " `spark: {spark.driver.memory: 4g}` in penstock.yaml. Then run again"
    )
    return Problem("RUN002", message, fix, query.sink.origin.where)
