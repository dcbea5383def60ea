"""Sources that other queries of the project feed: judged by what those will write, before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.engine import build
from penstock.engine.batches import VIEW
from penstock.formats.format import INFER
from penstock.graph.project_graph import Joint, NodeName, ProjectGraph
from penstock.pipeline.model import Sink, Source
from penstock.prepare.fitting_schemas import Form, misfits
from penstock.problems import Fault, Problem, UserError
from penstock.sinks.kafka import Kafka as KafkaSink
from penstock.sources.files import Files
from penstock.sources.kafka import Kafka as KafkaSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

Declare = Callable[[NodeName], build.Built]
"""Declares a query of the project to Spark. Raises UserError."""
_FORMS: dict[str, Form] = {"json": "json", "parquet": "columnar", "orc": "columnar"}


class Upstream:
    """What the queries of a project will write, asked of Spark once for each query that another reads from."""

    def __init__(self, graph: ProjectGraph, declare: Declare, may_make: Callable[[NodeName], bool]) -> None:
        self._graph, self._declare, self._may_make = graph, declare, may_make
        self._built: dict[NodeName, build.Built | None] = {}
        self._wrong: dict[NodeName, tuple[Problem, ...]] = {}
        self._under_way: set[NodeName] = set()
        self.waiting: set[NodeName] = set()
        """Queries with a source that is not there yet, or will get columns: built with rows in its place."""

    def begin(self, query: NodeName) -> None:
        """Says that a query is being built: one that reads its own output learns nothing from itself."""
        self._under_way.add(query)

    def know(self, query: NodeName, built: build.Built | None) -> None:
        """Keeps a query that was built anyhow; None: it has Problems, which are told already."""
        self._under_way.discard(query)
        self._built[query] = built

    def instead(self, query: NodeName) -> build.Instead | None:
        """What stands in for the sources of a query, where another one feeds it."""
        if not any(joint.place.kind != "topic" for joint in self._graph.joints_into(query)):
            return None
        return lambda session, source: self._rows(query, session, source)

    def _rows(self, query: NodeName, session: SparkSession, source: Source) -> DataFrame | None:
        """Rows in place of a source that is not there yet. Raises UserError."""
        joints = [one for one in self._graph.joints_of((query[0], source.name)) if one.place.kind != "topic"]
        if not joints:
            return None
        if not source.spec.is_there(session):
            joint = joints[0]
            if not self._may_make(joint.writer):
                raise UserError(_not_made(joint, query))
            columns = self._columns(joint)
            if columns is None:
                return None  # the source itself says that there is nothing to read
            self.waiting.add(query)
            return source.spec.rows_to_come(session, columns, _partitions(joint.sink))
        widening = next((one for one in joints if getattr(one.sink.spec, "merge_schema", False)), None)
        columns = self._columns(widening) if widening and self._may_make(widening.writer) else None
        if widening is None or columns is None:
            return None
        has = source.spec.load(session)
        known = {name.lower() for name in has.columns}
        new = [field for field in columns.fields if field.name.lower() not in known]
        if not new:
            return has
        from pyspark.sql.types import StructType

        self.waiting.add(query)
        return source.spec.rows_to_come(session, StructType([*has.schema.fields, *new]), _partitions(widening.sink))

    def _columns(self, joint: Joint) -> StructType | None:
        """Those that a sink will write; None where that is a question of what is just asked. Raises UserError."""
        if joint.writer in self._under_way:
            return None
        built = self._built_of(joint.writer)
        if built is None:
            wrong = self._wrong.get(joint.writer)
            raise UserError(wrong or _not_judged(joint))
        return written_rows(built, joint.sink).schema

    def _built_of(self, query: NodeName) -> build.Built | None:
        if query not in self._built:
            self.begin(query)
            try:
                self.know(query, self._declare(query))
            except UserError as error:
                self.know(query, None)
                self._wrong[query] = error.problems
        return self._built[query]

    def problems_of(self, query: NodeName, built: build.Built) -> Iterator[Problem]:
        """Where a source of the query declares columns that do not fit what feeds it."""
        for joint in self._graph.joints_into(query):
            writer = self._built.get(joint.writer)
            if writer is None:
                continue
            yield from _unfit(joint, written_rows(writer, joint.sink), built.session)
            if getattr(joint.source.spec, "change_feed", False) and not _records_changes(joint.sink):
                yield Problem(
                    "DELTA004",
                    f"source `{joint.source.name}` reads the changes of `{joint.place.shown}`, which sink"
                    f" `{joint.sink.name}` ({joint.sink.origin.where}) makes without them",
                    f"add `table_properties: {{delta.enableChangeDataFeed: true}}` to sink `{joint.sink.name}`, and for"
                    " a table that exists run ALTER TABLE … SET TBLPROPERTIES",
                    joint.source.origin.at("change_feed"),
                    "warning",  # a table that exists may record them all the same; the source looks at it
                )

    def told_with_both_ends(self, query: NodeName, error: UserError) -> tuple[Problem, ...]:
        """What Spark says against a column, with the place where the columns come from."""
        said = getattr(error.__cause__, "getCondition", lambda: None)() or ""
        joints = [one for one in self._graph.joints_into(query) if self._built.get(one.writer) is not None]
        if not said.startswith(("UNRESOLVED_COLUMN", "FIELD_NOT_FOUND", "DATATYPE_MISMATCH")) or not joints:
            return error.problems
        written = "; ".join(f"{_end(one)} writes {self._listed(one)}" for one in joints if one.place.kind != "topic")
        if not written:
            return error.problems
        return tuple(
            replace(one, message=f"{one.message}. {written}", fix=f"{one.fix}; or write the column there")
            for one in error.problems
        )

    def _listed(self, joint: Joint) -> str:
        built = self._built[joint.writer]
        assert built is not None  # noqa: S101 - for the type checker: it was looked at above
        return ", ".join(f"`{name}` {kind.upper()}" for name, kind in written_rows(built, joint.sink).dtypes)


def written_rows(built: build.Built, sink: Sink) -> DataFrame:
    """The rows as a sink writes them."""
    if sink.spec.batch_sql is None:
        return built.rows
    built.rows.createOrReplaceTempView(VIEW)
    return built.session.sql(sink.spec.batch_sql)


def make_for_readers(built: build.Built, joints: Sequence[Joint], storage: Callable[[str], Any]) -> Iterator[Problem]:
    """Makes what a query will write and others read: tables without rows, folders without files."""
    for joint in joints:
        try:
            if isinstance(joint.source.spec, Files):
                path = joint.source.spec.path
                if not storage(path).exists(path):
                    storage(path).make_folder(path)
            else:
                joint.sink.spec.make(written_rows(built, joint.sink))
        except Fault as fault:
            yield fault.at(joint.sink.origin.at(*fault.keys))


def _unfit(joint: Joint, rows: DataFrame, session: SparkSession) -> Iterator[Problem]:
    source, sink = joint.source.spec, joint.sink.spec
    if isinstance(source, Files) and source.format.schema_ not in (None, INFER):
        form = _FORMS.get(source.format.type)
        expected: Any = source.format.schema_
        written = rows.schema
    elif isinstance(source, KafkaSource) and isinstance(sink, KafkaSink):
        is_json = source.format.type == sink.format.type == "json" and joint.written.shown == sink.topic
        form = "json" if is_json else None
        expected = getattr(source.format, "schema_", None)
        written = rows.select(*sink.value_columns(rows)).schema
    else:
        return
    if form is None or not isinstance(expected, str):
        return
    is_topic = joint.place.kind == "topic"
    for name, why in misfits(written, _parsed_schema(expected, session), form):
        what = "does not write it" if why == "missing" else f"writes {why}"
        yield Problem(
            "CHAIN005",
            f"source `{joint.source.name}` expects the column `{name}`, and {_end(joint)} {what}",
            f"change `schema` of `{joint.source.name}`, or the step `{joint.sink.of}` of `{joint.writer[0]}`, which"
            f" writes {', '.join(written.names)}",
            joint.source.origin.at("format"),
            # Others may write to a topic too, and a record need not have each field.
            "warning" if is_topic and why == "missing" else "error",
        )


def _parsed_schema(ddl: str, session: SparkSession) -> StructType:
    return session.createDataFrame([], ddl).schema


def _partitions(sink: Sink) -> tuple[str, ...]:
    return tuple(getattr(sink.spec, "partition_by", ()))


def _records_changes(sink: Sink) -> bool:
    properties = getattr(sink.spec, "table_properties", {})
    return str(properties.get("delta.enableChangeDataFeed", "")).lower() == "true"


def _end(joint: Joint) -> str:
    return f"sink `{joint.sink.name}` of `{joint.writer[0]}` ({joint.sink.origin.where})"


def _not_made(joint: Joint, query: NodeName) -> Problem:
    return Problem(
        "CHAIN004",
        f"source `{joint.source.name}` reads `{joint.place.shown}`, which is not there yet: {_end(joint)} makes it",
        f"run both: `penstock run +{query[0]}`",
        joint.source.origin.where,
    )


def _not_judged(joint: Joint) -> Problem:
    return Problem(
        "CHAIN006",
        f"pipeline `{joint.reader[0]}` was not judged by Spark: source `{joint.source.name}` reads"
        f" `{joint.place.shown}`, and {_end(joint)}, which will make it, was not judged either",
        f"fix what is reported for `{joint.writer[0]}`, then check again",
        joint.source.origin.where,
        "warning",
    )
