"""Why a query failed, as a Problem: the root cause, the file, line or part that it is about, and a fix for its kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import unquote

from penstock.dead_letters.bad_records import DECODED, FUTURE
from penstock.engine.causes import Cause, says_something, was_not_retried
from penstock.facts.failure import Kind, RecordAt
from penstock.facts.raised import unsealed
from penstock.facts.thrown import Thrown
from penstock.notation.paths import is_within, shown
from penstock.pipeline.model import Pipeline, Query, Sink, Source, Step
from penstock.problems import Problem, Where
from penstock.transforms.sql import Sql

LOG = "`.penstock/spark.log`"
RESUMES = "the query resumes after the last committed batch"
_CONDITION = re.compile(r"^\[[A-Z0-9_.]+\]\s*")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*", re.DOTALL)
_SERVICES = {"kafka": ("kafka",), "database": ("postgres", "jdbc", "table"), "network": (), "files": ()}
_LONGEST = 500


@dataclass(frozen=True)
class FailedQuery:
    """A query that failed: where it is declared, and its cause."""

    query: Query
    pipeline: Pipeline
    checkpoint: str
    cause: Cause
    writing: Sink | None = None
    """The sink that was being written, where that is known."""

    @property
    def where(self) -> Where:
        return self.query.sink.origin.where


def problem_of(failed: FailedQuery) -> Problem:
    """The Problem of a failure of any kind but that of a bad record."""
    made: dict[Kind, Callable[[FailedQuery], Problem]] = {
        "new_columns": _new_columns,
        "data_loss": _data_loss,
        "checkpoint": _checkpoint,
        "damaged_file": _damaged_file,
        "missing_file": _missing_file,
        "source_away": _away,
        "sink_away": _away,
        "user_code": _user_code,
        "worker_died": _worker_died,
        "out_of_memory": _out_of_memory,
        "disk_full": _disk_full,
    }
    problem = made.get(failed.cause.kind, _other)(failed)
    return replace(problem, message=f"query `{failed.query.name}` failed: {problem.message}")


def cause_of(cause: Cause) -> str:
    """The cause in a text that is the same at each repetition: no values, times or numbers of tasks."""
    what = cause.link.condition or cause.link.classes[0]
    line = f"{cause.line[0]}:{cause.line[1]}" if cause.line else next(iter(cause.link.frames), "")
    record = "" if cause.record is None else f"{cause.record.node} {cause.record.check} {cause.record.place}"
    return " ".join(filter(None, (what, line, *cause.paths, cause.lost, record)))


def away_from(failed: FailedQuery) -> Source | Sink | None:
    """The source or sink that is away, as far as the exceptions and the declared parts show."""
    cause = failed.cause
    if failed.writing is not None and cause.reads is not True:
        return failed.writing
    types = _SERVICES[cause.service or "network"]
    sources = [one for one in failed.pipeline.sources_of(failed.query.name) if not types or one.spec.type in types]
    sinks = [one for one in failed.query.sinks if not types or one.spec.type in types]
    first, second = (sources, sinks) if cause.reads else (sinks, sources)
    if not types and cause.reads is None:
        return sources[0] if len(sources) == 1 and not sinks else None
    return next(iter((*first, *second)), None)


def of_record(record: RecordAt, node: Source | Step) -> Problem:
    """A record that `fail` stops at: which, where it is, and why it is bad."""
    at = ", ".join(f"{key} {value}" for key, value in record.place)
    reason = record.reason or "it cannot be decoded"
    shown_record = "" if record.record is None else f": {record.record}"
    message = f"`{node.name}` has a bad record{f' at {at}' if at else ''}: {reason}{shown_record}"
    places: dict[str, tuple[str, ...]] = {DECODED: ("on_bad_record",), FUTURE: ("watermark", FUTURE)}
    key = places.get(record.check, ("expect", record.check))
    fix = "correct the record where it is produced; or write `dead_letter` in place of `fail` to set bad records aside"
    return Problem("RECORD001", message, fix, node.origin.at(*key))


def of_schema_id(record: RecordAt, number: int, node: Source | Step) -> Problem:
    """A record whose schema was not in the registry when the query started."""
    at = ", ".join(f"{key} {value}" for key, value in record.place)
    message = f"`{node.name}` has a record{f' at {at}' if at else ''} of schema id {number}, which the registry lacks"
    fix = (
        f"register that schema (`GET /schemas/ids/{number}` of the registry must find it, under the topic's subject)"
        " and run again; or set such records aside with `on_bad_record: dead_letter`"
    )
    return Problem("REGISTRY004", message, fix, node.origin.at("format"))


def _new_columns(failed: FailedQuery) -> Problem:
    columns = failed.cause.columns
    names = ", ".join(f"`{name}`" for name in columns.columns) if columns else ""
    file = columns.file if columns else ""
    where = _source_of(failed, file)
    if columns and columns.types:
        theirs, ours = columns.types
        return Problem(
            "FAILURE003", f"column {names} is {theirs} in the file {file}, and the schema has {ours.upper()}",
            f"write {names} {theirs.upper()} in `schema:`, or move the file out of the folder", where,
        )  # fmt: skip
    return Problem(
        "SCHEMA002", f"the files have new columns: {names}" + (f", first seen in {file}" if file else ""),
        "write `on_new_columns: add` to add them to the schema, or `on_new_columns: rescue` to keep them as JSON",
        where,
    )  # fmt: skip


def _data_loss(failed: FailedQuery) -> Problem:
    source = away_from(failed)
    lost = f": {failed.cause.lost}" if failed.cause.lost else ""
    return Problem(
        "KAFKA004", f"Kafka deleted records before they were read{lost}",
        "write `fail_on_data_loss: false` in the source to resume after the lost records; and raise `retention.ms` of"
        " the topic, so that Kafka keeps the next ones until they are read",
        source.origin.where if source else failed.where,
    )  # fmt: skip


def _checkpoint(failed: FailedQuery) -> Problem:
    cause, where = failed.cause, failed.query.origin.where
    start_over = (
        f"move the folder `{failed.checkpoint}` away: the query then starts without state, and reads its sources from"
        " their beginning"
    )
    if cause.paths:
        return Problem(
            "FAILURE001", f"the checkpoint file {_named(cause.paths[0])} cannot be read: {text_of(cause.root)}",
            f"restore that file from a backup. Without one, {start_over}", where,
        )  # fmt: skip
    if cause.link.condition.startswith("CONCURRENT_STREAM_LOG_UPDATE"):
        return Problem(
            "FAILURE001", f"two runs write the checkpoint `{failed.checkpoint}`",
            "stop the other run: only one may write a checkpoint", where,
        )  # fmt: skip
    if cause.link.condition.startswith(("CANNOT_LOAD_STATE_STORE", "CHECKPOINT_FILE", "MALFORMED", "BATCH_METADATA")):
        return Problem(
            "FAILURE001", f"the state in `{failed.checkpoint}` cannot be read: {text_of(cause.root)}",
            f"restore the folder from a backup. Without one, {start_over}", where,
        )  # fmt: skip
    return Problem(
        "FAILURE002",
        f"its checkpoint was written by a query with other keys, aggregates or sources: {text_of(cause.link)}",
        f"undo the change of the step's keys, aggregates or sources; or {start_over}", where,
    )  # fmt: skip


def _damaged_file(failed: FailedQuery) -> Problem:
    file = failed.cause.paths[0] if failed.cause.paths else ""
    return Problem(
        "FAILURE003", f"the file {_named(file)} cannot be read: {text_of(failed.cause.root)}",
        "write the file again; or write `ignore_corrupt_files: true` in the source: Spark then passes over such files,"
        " and their rows are lost",
        _source_of(failed, file),
    )  # fmt: skip


def _missing_file(failed: FailedQuery) -> Problem:
    file = failed.cause.paths[0] if failed.cause.paths else ""
    what = f"the file {_named(file)} is gone" if file else f"a file is gone: {text_of(failed.cause.root)}"
    return Problem(
        "FAILURE004", f"{what}, and a batch has to read it",
        "put the file back; or write `ignore_missing_files: true` in the source to pass over files that are gone",
        _source_of(failed, file),
    )  # fmt: skip


def _away(failed: FailedQuery) -> Problem:
    node, said = away_from(failed), text_of(failed.cause.link)
    if node is None:
        return Problem(
            "FAILURE005", f"a service cannot be reached: {said}",
            f"start the service, and open the network to it from this machine; then {RESUMES}", failed.where,
        )  # fmt: skip
    side = "source" if isinstance(node, Source) else "sink"
    return Problem(
        "FAILURE005", f"the {side} `{node.name}` cannot be reached: {said}",
        f"start the service, or correct the address in `{node.name}`; then {RESUMES}", node.origin.where,
    )  # fmt: skip


def _user_code(failed: FailedQuery) -> Problem:
    cause = failed.cause
    said = f"{cause.link.name}: {text_of(cause.link)}" if says_something(cause.link) else cause.link.name
    if cause.line is None:
        return Problem(
            "FAILURE006", f"a Python function fails: {said}",
            "change the function so that it returns the columns and types that it declares", failed.where,
        )  # fmt: skip
    file, line = shown(cause.line[0]), cause.line[1]
    return Problem(
        "FAILURE006", f"your code fails at {file}:{line}: {said}",
        f"change the code at that line so that it accepts this input; then {RESUMES}", Where(file, line),
    )  # fmt: skip


def _worker_died(failed: FailedQuery) -> Problem:
    python = any(".python." in frame for frame in failed.cause.link.frames[:4])
    who = "a Python worker" if python else "an executor"
    key = "spark.executor.pyspark.memory" if python else "spark.executor.memory"
    return Problem(
        "FAILURE007", f"{who} ended while it worked: it was killed, crashed, or ran out of memory",
        f"if it happens again, give it more memory in penstock.yaml: `spark: {{{key}: 2g}}`; `dmesg` shows whether the"
        " system killed it",
        failed.where,
    )  # fmt: skip


def _out_of_memory(failed: FailedQuery) -> Problem:
    return Problem(
        "FAILURE008", f"there was not enough memory: {text_of(failed.cause.link)}",
        "give Spark more in penstock.yaml: `spark: {spark.driver.memory: 4g}`, and on a cluster"
        " `spark.executor.memory`; or make batches smaller: `max_offsets_per_trigger: 100000` or"
        " `max_files_per_trigger: 10` in the source",
        failed.where,
    )  # fmt: skip


def _disk_full(failed: FailedQuery) -> Problem:
    file = f" at {_named(failed.cause.paths[0])}" if failed.cause.paths else ""
    return Problem(
        "FAILURE009", f"the disk is full{file}: {text_of(failed.cause.link)}",
        f"free space on the disks of `{failed.checkpoint}`, of the sink and of `spark.local.dir`: `df -h` shows which"
        f" one is full; then {RESUMES}",
        failed.where,
    )  # fmt: skip


def _other(failed: FailedQuery) -> Problem:
    cause = failed.cause
    if was_not_retried(cause):
        return Problem(
            "RUN001", "a task failed, and under `continuous` Spark does not run one again",
            f"search {LOG} for `Exception in task`, and correct what the exception names; then {RESUMES}", failed.where,
        )  # fmt: skip
    if cause.link.condition == "USER_RAISED_EXCEPTION":
        return Problem(
            "RUN001", f"a step raised an error for a row: {text_of(cause.link)}",
            "drop such rows before the step that raises: write an `expect:` with `otherwise: drop` on its input",
            _fragment_of(failed, cause.link) or failed.where,
        )  # fmt: skip
    if cause.link.sqlstate.startswith("22") and cause.link.condition:
        return Problem(
            "FAILURE010", text_of(cause.link),
            "use the form of the function that gives NULL: `try_cast`, `try_divide`, `try_element_at`; or drop such"
            " rows with an `expect:` on the step before it",
            _fragment_of(failed, cause.link) or failed.where,
        )  # fmt: skip
    return Problem("RUN001", _said(cause), _fix(cause), _fragment_of(failed, cause.link) or failed.where)


def _said(cause: Cause) -> str:
    if says_something(cause.root):
        return text_of(cause.root)
    site = f" in `{cause.sites[0]}`" if cause.sites else ""
    return f"Spark stopped with {cause.root.name}{site} and gives no reason"


def _fix(cause: Cause) -> str:
    if cause.root.is_a("org.apache.hadoop.security.AccessControlException", "java.nio.file.AccessDeniedException"):
        return f"give this user the right to read and write that file, with `chown` or `chmod`; then {RESUMES}"
    if cause.root.is_a("org.apache.kafka.common.errors.AuthorizationException"):
        return f"give the Kafka user the missing right with `kafka-acls.sh --add`; then {RESUMES}"
    if cause.root.is_a("org.apache.kafka.common.errors.RecordTooLargeException"):
        return "raise `max.message.bytes` of the topic and `kafka_options: {max.request.size: …}` of the sink"
    return f"search {LOG} for this message: the stack trace below it names the part to correct; then {RESUMES}"


def text_of(link: Thrown) -> str:
    """What an exception says, in one line, without Spark's codes."""
    text = _SQLSTATE.sub("", _CONDITION.sub("", link.message.strip()))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = unsealed(lines[0]) if lines else link.name
    return (line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…").rstrip(".;")


def _named(path: str) -> str:
    return f"`{unquote(path)}`" if path else "of a source"


def _source_of(failed: FailedQuery, file: str) -> Where:
    """Where the source is declared that a file belongs to."""
    sources = failed.pipeline.sources_of(failed.query.name)
    for source in sources:
        path = getattr(source.spec, "path", None)
        if path and file and is_within(path, unquote(file)):
            return source.origin.at("path")
    return sources[0].origin.where if len(sources) == 1 else failed.where


def _fragment_of(failed: FailedQuery, link: Thrown) -> Where | None:
    """The place in a step's SQL that Spark names, if one step alone has that text."""
    if not link.fragment:
        return None
    steps = [node for node in failed.pipeline.upstream(failed.query.name) if isinstance(node, Step)]
    having = [(one, one.spec.sql) for one in steps if isinstance(one.spec, Sql) and link.fragment in one.spec.sql]
    if len(having) != 1:
        return None
    step, text = having[0]
    before, _, _ = text.partition(link.fragment)
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2])
    return step.origin.at("sql").inside(line, column)
