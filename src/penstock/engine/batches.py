"""Writes batches into sinks that Spark does not write by itself, or that share a query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.crash_points import reached
from penstock.dead_letters import verdicts
from penstock.dead_letters.leaving import at
from penstock.engine.session import Engine
from penstock.pipeline.model import Pipeline, Query, Sink, Source
from penstock.problems import Fault, Problem, UserError
from penstock.sinks.batch import Batch
from penstock.sinks.files import Files
from penstock.sinks.ledger import FileLedger, is_done
from penstock.spark_internals import note_caller
from penstock.storage.storage import join

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

VIEW = "batch"
"""The table that `batch_sql` reads."""
LEDGER = "ledger"
"""The folder of a checkpoint that notes which batch each sink has."""


class BatchWriter:
    """Called with each batch. Every sink gets it once: each is guarded by a ledger, its own or Penstock's notes.

    The batch is computed once, kept while several sinks or passes read it. With `materialise` it is computed before
    anything is written, also if every sink has it already: a batch whose state is not computed breaks the next one.
    """

    def __init__(
        self, engine: Engine, pipeline: Pipeline, query: Query, checkpoint: str, query_id: str, *, materialise: bool
    ) -> None:
        self._pipeline, self._query, self._query_id = pipeline, query, query_id
        self._checkpoint, self._materialise = checkpoint, materialise
        self._notes = FileLedger(engine.storage(checkpoint), join(checkpoint, LEDGER), query_id)
        self.problem: Problem | None = None
        """What a sink, or the ledger, reports about its own failure."""
        self.refused: Problem | None = None
        """Why a source refused the batch; it may be able to adapt."""
        self.error: Exception | None = None
        """What was raised: by Spark, by the user's code, or by a sink together with its Problem."""
        self.writing: Sink | None = None
        """The sink that is being written."""

    def __call__(self, rows: DataFrame, number: int) -> None:
        note_caller()
        reached("after_offset_log")
        try:
            for source in self._pipeline.sources_of(self._query.name):
                if source.spec.declared_capabilities.checks_batches:
                    self._show(source, rows, number)
            with self._kept(rows):
                for place, sink in enumerate(self._query.sinks):
                    if place:
                        reached("between_sinks")
                    self._write(sink, rows, number)
                reached("before_commit_log")
        except Exception as error:
            self.error = error
            if self.problem is None and self.refused is None:
                self.problem = self._problem_in(error)
            raise

    def _problem_in(self, error: Exception) -> Problem | None:
        """The Problem that an error carries, so that its code and its fix are not lost on the way through Spark."""
        if isinstance(error, UserError):
            return error.problems[0]
        if isinstance(error, Fault):
            sink = self.writing or self._query.sink
            return error.at(sink.origin.at(*error.keys))
        return None

    def _show(self, source: Source, rows: DataFrame, number: int) -> None:
        try:
            source.spec.before_batch(rows.sparkSession, self._checkpoint, number)
        except Fault as fault:
            self.refused = fault.at(source.origin.at(*fault.keys))
            raise

    @contextmanager
    def _kept(self, rows: DataFrame) -> Iterator[None]:
        passes_once = len(self._query.sinks) == 1 and self._query.sink.spec.declared_capabilities.single_pass
        if passes_once and not self._materialise:
            yield
            return
        rows.persist()
        try:
            if self._materialise:
                rows.count()
            yield
        finally:
            rows.unpersist()

    def _write(self, sink: Sink, rows: DataFrame, number: int) -> None:
        spec, self.writing = sink.spec, sink
        if not spec.declared_capabilities.has_ledger and is_done(self._notes, sink.name, number):
            return
        batch = Batch(
            self._pipeline.name,
            self._query_id,
            sink.name,
            number,
            put_aside=lambda refused: self._put_aside(sink, refused, number),
            ledger=self._notes,
        )
        if spec.batch_sql is not None:
            rows.createOrReplaceTempView(VIEW)
            rows = rows.sparkSession.sql(spec.batch_sql)
        spec.write(spec.encoded(rows), batch)
        reached("after_sink_commit")
        if not spec.declared_capabilities.has_ledger:
            self._notes.note(sink.name, number)
        self.writing = None

    def _put_aside(self, sink: Sink, refused: DataFrame, number: int) -> None:
        """Keeps what a sink refused. Run again, a batch replaces what it kept the first time."""
        self._keep(sink, refused, number)
        reached("after_dead_letters")

    def _keep(self, sink: Sink, refused: DataFrame, number: int) -> None:
        letters = verdicts.of_sink(refused, sink.name)
        place = at(self._pipeline.dead_letters, sink.name)  # type: ignore[arg-type] # every pipeline has one
        if isinstance(place, Files):
            folder = join(place.path, f"query={self._query_id}", f"batch={number}")
            letters.write.mode("overwrite").format(place.format.type).save(folder)
            return
        name = f"{sink.name}_dead_letters"
        # An identity of its own: under that of the query, a table would take this for a batch that it has.
        own_id = f"{self._query_id}/{name}"
        batch = Batch(self._pipeline.name, own_id, name, number, put_aside=_nowhere, ledger=self._notes)
        place.write(place.encoded(letters), batch)


def _nowhere(refused: DataFrame) -> None:
    raise Fault(
        "RECORD003",
        "a dead letter was refused",
        "give the rows of `dead_letters:` a sink that takes every row, such as `type: files`",
    )
