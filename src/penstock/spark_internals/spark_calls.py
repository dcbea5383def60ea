"""What Penstock asks of Spark's JVM and PySpark has no public function for: the process, plans, queries, formats."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from penstock.spark_internals.gateway import java_session, jvm_of, unwrapped
from penstock.spark_internals.java_errors import JavaError, JvmError

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter


# The process


@dataclass(frozen=True)
class Jvm:
    """A JVM that this process has launched."""

    process: subprocess.Popen[bytes]
    gateway: Any

    def context(self, conf: SparkConf) -> SparkContext:
        """A SparkContext in it. If the JVM dies, PySpark prints no traceback: Penstock reports it as a Problem."""
        from pyspark import SparkContext

        context = SparkContext(conf=conf, gateway=self.gateway)
        context._accumulatorServer.handle_error = lambda *request: None  # type: ignore[method-assign]
        return context

    def close(self) -> None:
        """Closes the connection. A later start in this process can then launch a JVM of its own."""
        self.gateway.shutdown()
        self.forget()

    def forget(self) -> None:
        """Leaves the JVM to itself. A later start in this process can then launch one of its own."""
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = None


def answers(spark: SparkSession) -> bool:
    """Does the JVM still answer? A call costs less than a millisecond."""
    try:
        return int(spark._jvm.System.currentTimeMillis()) > 0  # type: ignore[union-attr]
    except (OSError, JvmError):
        return False


def connected(process: subprocess.Popen[bytes]) -> Jvm:
    """The JVM of this process that PYSPARK_GATEWAY_PORT and PYSPARK_GATEWAY_SECRET lead to."""
    from pyspark.java_gateway import launch_gateway

    return Jvm(process, launch_gateway())  # type: ignore[no-untyped-call]


def running_session() -> SparkSession | None:
    """The session of this process, whichever thread made it; None after its Spark has stopped."""
    from pyspark.sql import SparkSession

    session: SparkSession | None = SparkSession._instantiatedSession
    return session if session is not None and session._jsc is not None and session._sc._jsc is not None else None


@contextlib.contextmanager
def active(session: SparkSession) -> Iterator[None]:
    """Makes a session the active one of this thread: Spark reads some settings, and looks up catalogs, there alone."""
    sessions = getattr(jvm_of(session), "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(java_session(session))
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def executors(spark: SparkSession) -> int:
    """How many executors are there now? The driver keeps blocks too, and is not one of them."""
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1


def print_line(spark: SparkSession, text: str) -> None:
    """Prints a line on the JVM's standard output."""
    jvm_of(spark).java.lang.System.out.println(text)


def has_class(spark: SparkSession, name: str) -> bool:
    """Does Spark find a Java class of this name?"""
    try:
        jvm_of(spark).org.apache.spark.util.Utils.getContextOrSparkClassLoader().loadClass(name)
    except JvmError:
        return False
    return True


def lock_file(spark: SparkSession, path: str) -> Callable[[], None] | None:
    """Locks a file for as long as the JVM lives. Gives the function that unlocks it; None if it is locked already."""
    handle = jvm_of(spark).java.io.RandomAccessFile(path, "rw")
    try:
        lock = handle.getChannel().tryLock()
    except JavaError:  # OverlappingFileLockException: this very process holds it
        lock = None
    if lock is None:
        handle.close()
        return None

    def unlock() -> None:
        lock.release()
        handle.close()

    return unlock


# File systems


def file_system_class(spark: SparkSession) -> str:
    """The Java class that serves Hadoop's default file system."""
    files = jvm_of(spark).org.apache.hadoop.fs.FileSystem.get(unwrapped(spark.sparkContext)._jsc.hadoopConfiguration())
    return str(files.getClass().getName())


def hadoop_path(spark: SparkSession, path: str) -> Any:
    """A Hadoop `Path`."""
    return jvm_of(spark).org.apache.hadoop.fs.Path(path)


def hadoop_conf(spark: SparkSession) -> Any:
    """The Hadoop `Configuration` of a session, with the credentials that Spark has."""
    return java_session(spark).sessionState().newHadoopConf()


def atomic_stream(spark: SparkSession, path: Any, conf: Any) -> Any:
    """A Java stream that makes or replaces a file when it is closed, as Spark writes its own checkpoint files."""
    checkpointing = jvm_of(spark).org.apache.spark.sql.execution.streaming.checkpointing
    return checkpointing.CheckpointFileManager.create(path.getParent(), conf).createAtomic(path, True)


# Plans


def clock(spark: SparkSession) -> Column:
    """The time at which a row is computed, in milliseconds. Spark's own functions give that of the batch's begin."""
    from pyspark.sql.classic.column import Column

    jvm = jvm_of(spark)
    nothing = jvm.scala.jdk.javaapi.CollectionConverters.asScala(jvm.java.util.ArrayList()).toSeq()
    called = jvm.org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke(
        jvm.java.lang.Class.forName("java.lang.System"),
        jvm.org.apache.spark.sql.types.DataType.fromJson('"long"'),
        "currentTimeMillis",
        nothing,
        nothing,
        True,  # propagates NULL: it has no arguments
        False,  # returns no NULL
        False,  # is not deterministic, so it is asked once for each row, where it stands
        jvm.scala.Option.empty(),
    )
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(called))


# Running queries


def session_of(writer: DataStreamWriter) -> SparkSession:
    """The session whose rows a writer writes."""
    session: SparkSession = unwrapped(writer)._spark
    return session


def set_real_time(writer: DataStreamWriter, interval: str) -> DataStreamWriter:
    """The writer with a real-time trigger. For Spark 4.1: from 4.2 on PySpark's own `trigger` takes `realTime`."""
    inside = unwrapped(writer)
    trigger = jvm_of(session_of(writer)).org.apache.spark.sql.streaming.Trigger.RealTime(interval)
    inside._jwrite = inside._jwrite.trigger(trigger)
    return writer


def reports_since(query: StreamingQuery, batch: int) -> Iterator[str]:
    """The JSON of the reports on batches after `batch`, newest first, as far as Spark keeps them.

    Spark keeps a hundred, and to write one as JSON takes time: PySpark's `recentProgress` writes them all.
    """
    reports = unwrapped(query)._jsq.recentProgress()
    for number in range(len(reports) - 1, -1, -1):
        if int(reports[number].batchId()) <= batch:
            return
        yield str(reports[number].json())


def newest_batch(query: StreamingQuery, log: Literal["offsets", "commits"]) -> int | None:
    """The newest batch in one of the query's logs, in memory or on disk; None before the first."""
    newest = _logs(query)[log].getLatest()
    return int(newest.get()._1()) if newest.isDefined() else None


def files_not_listed(query: StreamingQuery, after: int) -> tuple[int, list[str]] | None:
    """The batch that Spark planned last, if it is behind `after`, and the files of it that were gone when it was.

    Spark reads the others only, without a word. None before the first batch, and under Continuous Processing.
    """
    execution = unwrapped(query)._jsq.streamingQuery().lastExecution()
    if execution is None or int(execution.currentBatchId()) <= after:
        return None
    gone: list[str] = []
    leaves = execution.analyzed().collectLeaves()
    for leaf in (leaves.apply(number) for number in range(leaves.size())):
        if not (leaf.nodeName().startswith("LogicalRelation") and leaf.isStreaming()):
            continue
        if str(leaf.relation().location().getClass().getName()).endswith("InMemoryFileIndex"):  # a folder of files
            # Not `allFiles`: that asks for the file system of each path, and these are only counted.
            named, listed = leaf.relation().location().rootPaths(), leaf.relation().location().leafFiles()
            if int(listed.size()) < int(named.size()):
                there = set(str(listed.keysIterator().mkString("\n")).split("\n"))
                gone += [path for path in str(named.mkString("\n")).split("\n") if path not in there]
    return int(execution.currentBatchId()), gone


def write_newest_commit(query: StreamingQuery, session: SparkSession) -> None:
    """Writes the newest committed batch of a stopped query to disk, if it did not fail. A file that exists stays."""
    if unwrapped(query)._jsq.streamingQuery().exception().isDefined():
        return  # why it failed may be the log itself
    logs = _logs(query)
    newest = logs["commits"].getLatest()
    planned = logs["offsets"].get(newest.get()._1()) if newest.isDefined() else newest
    if not planned.isDefined():
        return
    classes = jvm_of(session).org.apache.spark.sql.execution.streaming.checkpointing
    # The offsets first, as Spark does.
    for on_disk, in_memory, entry in (
        (classes.OffsetSeqLog, logs["offsets"], planned.get()),
        (classes.CommitLog, logs["commits"], newest.get()._2()),
    ):
        _log_at(on_disk, session, in_memory.metadataPath().toString()).add(newest.get()._1(), entry)


def sql_executions(spark: SparkSession) -> Any:
    """The `SQLAppStatusStore` that Spark keeps for its own page on SQL: each execution, its plan and its metrics."""
    return java_session(spark).sharedState().statusStore()


# Formats, tables and databases


def read_json(reader: DataFrameReader, texts: DataFrame) -> DataFrame:
    """Reads the JSON documents in the only column of `texts`."""
    from pyspark.sql import DataFrame as Rows

    documents = getattr(unwrapped(texts)._jdf, "as")(jvm_of(texts.sparkSession).org.apache.spark.sql.Encoders.STRING())
    return Rows(unwrapped(reader)._jreader.json(documents), texts.sparkSession)


def avro_schema(rows: DataFrame, name: str) -> str:
    """The Avro schema that Spark makes of the columns. For a Spark that has the connector `avro`."""
    loader = jvm_of(rows.sparkSession).java.lang.Thread.currentThread().getContextClassLoader()
    converters = loader.loadClass("org.apache.spark.sql.avro.SchemaConverters$").getField("MODULE$").get(None)
    return str(converters.toAvroType(unwrapped(rows)._jdf.schema(), False, name, "").toString())


def limit_avro_lengths(spark: SparkSession, largest: Mapping[str, int]) -> None:
    """Makes Avro refuse values that are longer than these, by kind: `bytes`, `string`. What the user has set stays."""
    jvm, context = jvm_of(spark), unwrapped(spark.sparkContext)
    for kind, length in largest.items():
        name = f"org.apache.avro.limits.{kind}.maxLength"
        if jvm.java.lang.System.getProperty(name) is None:
            jvm.java.lang.System.setProperty(name, str(length))
    # Avro may have read them already.
    limits = jvm.java.lang.Class.forName("org.apache.avro.SystemLimitException")
    read_again = limits.getDeclaredMethod("resetLimits", context._gateway.new_array(jvm.java.lang.Class, 0))
    read_again.setAccessible(True)
    read_again.invoke(None, context._gateway.new_array(jvm.java.lang.Object, 0))


def is_delta_table(spark: SparkSession, path: str) -> bool:
    """Is there a Delta table at this path? For a Spark that has the connector `delta`."""
    return bool(jvm_of(spark).io.delta.tables.DeltaTable.isDeltaTable(java_session(spark), path))


def iceberg_table(spark: SparkSession, table: str) -> Any:
    """An Iceberg `Table`, read again from its catalog. For a Spark that has the connector `iceberg`."""
    return jvm_of(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(java_session(spark), table)


def jdbc_options(spark: SparkSession, options: Mapping[str, str]) -> Any:
    """Spark's `JDBCOptions`. Raises JavaError if there is no driver for the URL."""
    jvm = jvm_of(spark)
    scala = jvm.PythonUtils.toScalaMap(jvm.java.util.HashMap(dict(options)))
    return jvm.org.apache.spark.sql.execution.datasources.jdbc.JDBCOptions(scala)


def jdbc_dialect(spark: SparkSession, url: str) -> Any:
    """Spark's `JdbcDialect` for a URL. It opens connections, with the drivers in the jars of the session."""
    return jvm_of(spark).org.apache.spark.sql.jdbc.JdbcDialects.get(url)


# What every call goes through


def _logs(query: StreamingQuery) -> Mapping[str, Any]:
    execution = unwrapped(query)._jsq.streamingQuery()
    return {"offsets": execution.offsetLog(), "commits": execution.commitLog()}


def _log_at(kind: Any, session: SparkSession, path: str) -> Any:
    try:
        return kind(java_session(session), path)
    except JavaError:
        raise
    except JvmError:  # Spark 4.3 has no such constructor: it wants to know whether the log is only read
        return kind(java_session(session), path, False)
