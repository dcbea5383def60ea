"""What Spark says is wrong, as a Problem at the user's line."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.dead_letters.bad_records import DECODED, FUTURE
from penstock.dead_letters.verdicts import FAILED, PLACE, SHOWN_CHARACTERS
from penstock.notation.references import Mask
from penstock.pipeline.model import Pipeline, Query, Sink, Source, Step
from penstock.problems import Problem, Where
from penstock.spark_internals import descriptions, java_message
from penstock.transforms.python import Python
from penstock.transforms.sql import Sql
from penstock.user_code import line_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINE_POS = re.compile(r"\(?line (\d+),? pos (\d+)\)?")
_JAVA_CLASS = re.compile(r"^[\w.$]+(?:Exception|Error)(?:: |$)")
_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\]\s*")
_NOISE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_NO_RETRY = "does not support task retry"
"""What Continuous Processing says of a task that failed before, without saying why."""
_FIXES = {
    "UNRESOLVED_COLUMN": "use a column that the step's inputs have",
    "TABLE_OR_VIEW_NOT_FOUND": "name a source or step of the pipeline, or declare the table as a source",
    "PARSE_SYNTAX_ERROR": "mend the SQL",
    "PARSE_EMPTY_STATEMENT": "write a SELECT",
    "UNRESOLVED_ROUTINE": "use a function that Spark has",
    "PATH_NOT_FOUND": "make the folder, or name one that exists",
    "UNABLE_TO_INFER_SCHEMA": "put a file there first, or give the schema as DDL",
    "DATATYPE_MISMATCH": "cast one side: `CAST(x AS …)`",
    "STREAMING_OUTPUT_MODE": "choose another `mode` for the query, or add a `watermark` to its source",
    "DATA_SOURCE_NOT_FOUND": "use a format that Spark knows, or add its jar under `spark: {spark.jars: …}`",
    "UNSUPPORTED_DATATYPE": "write the schema as DDL: `id BIGINT, at TIMESTAMP`",
}


def while_building(error: Exception, node: Source | Step, nodes: Mapping[str, Source | Step] | None = None) -> Problem:
    """What went wrong when the rows of a source or a step were declared to Spark, or looked at."""
    if not is_spark_error(error):
        return _in_user_code(error, node)
    if nodes and (told := _told_record(str(error))):
        return bad_record(told, nodes)
    where = _place(error, node)
    code = {"Source": "SPARK001", "Step": "SPARK002"}[type(node).__name__]
    noun = type(node).__name__.lower()
    return Problem(code, f"Spark refuses {noun} `{node.name}`: {message_of(error)}", fix_for(error), where)


def while_starting(error: Exception, sink: Sink) -> Problem:
    """What went wrong when a query was started on its sink."""
    return Problem(
        "SPARK003", f"Spark refuses sink `{sink.name}`: {message_of(error)}", fix_for(error), sink.origin.where
    )


def unsupported(error: Exception, where: Where, query: str) -> Problem:
    """Spark's own verdict on a query that it can read but not stream."""
    return Problem("SPARK004", f"Spark cannot stream `{query}`: {message_of(error)}", fix_for(error), where)


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


def fix_for(error: Exception) -> str:
    condition = condition_of(error)
    return next(
        (fix for start, fix in _FIXES.items() if condition.startswith(start)), "see what Spark says, and change it"
    )


def causes(error: BaseException) -> Iterator[str]:
    """What PySpark's error and each error behind it say, outermost first, without the Java class that says it."""
    for described in descriptions(error):
        if said := _JAVA_CLASS.sub("", described):
            yield said


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
    return Problem("SPARK005", message, "mend the function", where)


def query_failed(error: Exception, query: Query, pipeline: Pipeline, session: SparkSession, mask: Mask) -> Problem:
    """Why a running query stopped: the innermost cause that says something, and the file that could not be read."""
    said = list(causes(error)) or [str(error)]
    if told := next((record for text in said if (record := _told_record(text))), None):
        problem = bad_record(told, pipeline.nodes, session)
        return replace(problem, message=mask(problem.message))
    unread = [text for text in said[:-1] if text.startswith("[FAILED_READ_FILE")]
    message = ": ".join(dict.fromkeys(_one_line(text) or type(error).__name__ for text in (*unread[-1:], said[-1])))
    cause = "the cause, which `.penstock/spark.log` tells," if _NO_RETRY in message else "the cause"
    fix = f"mend {cause} and run again: it goes on from the last committed batch"
    return Problem("RUN001", mask(f"query `{query.name}` failed: {message}"), fix, query.sink.origin.where)


def _told_record(text: str) -> dict[str, Any] | None:
    """What a query says of the record that it stopped at. Where Spark shows the plan too, the words are in pieces."""
    for rest in text.split(FAILED)[1:]:
        with contextlib.suppress(ValueError):
            told: dict[str, Any] = json.JSONDecoder().raw_decode(rest)[0]
            return told
    return None


def bad_record(
    told: Mapping[str, Any], nodes: Mapping[str, Source | Step], session: SparkSession | None = None
) -> Problem:
    """A record that `fail` stops at: which, where it is, and why it is bad. With a session it is read once more."""
    node = nodes[told["node"]]
    place = {name: told[name] for name in PLACE if name in told}
    at = ", ".join(f"{key} {value}" for key, value in place.items())
    reason, record = told.get("reason"), told.get("record")
    if not reason:
        reason, record = _reread(node, place, session)
    message = f"`{node.name}` has a bad record{f' at {at}' if at else ''}: {reason}: {record}"
    places = {DECODED: ("on_bad_record",), FUTURE: ("watermark", FUTURE)}
    key = places.get(told["check"], ("expect", told["check"]))
    fix = "mend the record, or let bad ones be put aside with `dead_letter` in place of `fail`"
    return Problem("RECORD001", message, fix, node.origin.at(*key))


def _reread(node: Source | Step, place: Mapping[str, Any], session: SparkSession | None) -> tuple[str, str | None]:
    """Why a record is bad and how it begins, where the error that it led to does not say."""
    if isinstance(node, Source) and session is not None:
        with contextlib.suppress(Exception):  # what cannot be read any more must not hide the failure itself
            if found := node.spec.reread(session, place):
                reason, raw = found
                return reason, None if raw is None else raw.decode(errors="replace")[:SHOWN_CHARACTERS]
    return "it cannot be decoded", None


def _one_line(text: str) -> str:
    lines = [line.strip() for line in _CLASS.sub("", text.strip()).splitlines() if line.strip()]
    # A Python worker's error is a whole traceback; its last line is the error itself.
    line = lines[-1] if any(line.startswith("Traceback") for line in lines) else "".join(lines[:1])
    return _NOISE.sub("", line).rstrip(".")


def spark_is_gone(query: Query) -> Problem:
    """The JVM has died under a running query: killed, or out of memory."""
    message = f"Spark has died, and query `{query.name}` with it"
    fix = "see `.penstock/spark.log`; it may need more memory (`spark: {spark.driver.memory: 4g}`). Then run again"
    return Problem("RUN002", message, fix, query.sink.origin.where)
