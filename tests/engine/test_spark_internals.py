"""Each private call of Spark gives what it says, on the Spark that is installed here."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from uuid import uuid4

import pytest

from penstock import spark_internals
from penstock.engine.connectors import available
from penstock.engine.session import installed_version
from penstock.engine.spark_versions import minor
from penstock.spark_internals import JavaError, JvmError
from tests.frames import frame

pytestmark = pytest.mark.spark

INSTALLED = minor(installed_version())


def needs(connector: str) -> pytest.MarkDecorator:
    """For a call into a connector, which may not exist for a new Spark yet."""
    return pytest.mark.skipif(connector not in available(INSTALLED), reason=f"Spark {INSTALLED} has no `{connector}`")


@pytest.fixture
def rates(spark):
    return spark.newSession().readStream.format("rate").load()


@pytest.fixture
def query(spark, tmp_path):
    """A query of two batches that has ended by itself."""
    (tmp_path / "in").mkdir()
    for number in range(2):
        (tmp_path / "in" / f"{number}.txt").write_text("a\n")
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    started = writer.trigger(availableNow=True).start()
    started.awaitTermination(60)
    return started


# The process


def test_a_local_spark_has_no_executor_but_the_driver(spark):
    assert spark_internals.executors(spark) == 0


def test_a_jvm_is_launched_and_closed_and_another_can_follow(tmp_path):
    """In a process of its own: this one has its JVM already."""
    code = """
import os
from pyspark import SparkConf
from pyspark.sql import SparkSession
from penstock import spark_internals
from penstock.engine.jvm import launch

assert spark_internals.running_session() is None
for turn in range(2):
    settings = {"spark.master": "local[1]", "spark.ui.enabled": "false"}
    with open(os.devnull, "wb") as stderr:
        jvm = launch(settings, (), stderr).connect()  # by spark_internals.connected()
    conf = SparkConf().setAll(list(settings.items()))
    session = SparkSession(jvm.context(conf))
    assert spark_internals.running_session() is session
    assert jvm.process.poll() is None
    session.stop()
    assert spark_internals.running_session() is None
    jvm.close()
    jvm.process.stdin.close()
    jvm.process.wait(30)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600, cwd=tmp_path)


def test_the_session_of_the_process(spark):
    assert spark_internals.running_session() is not None


def test_a_session_is_active_within_a_block(spark):
    def active_partitions():
        return spark._jvm.org.apache.spark.sql.internal.SQLConf.get().numShufflePartitions()

    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "17")
    with spark_internals.active(spark):
        before = active_partitions()
        with spark_internals.active(own):
            assert active_partitions() == 17
        assert active_partitions() == before != 17


def test_a_line_is_printed_by_the_jvm(engine, spark):
    lines: list[str] = []
    text = str(uuid4())
    with engine.console_to(lines.append):
        spark_internals.print_line(spark, text)
    assert text in lines


def test_a_class_is_found_or_not(spark):
    assert spark_internals.has_class(spark, "org.apache.spark.sql.SparkSession")
    assert not spark_internals.has_class(spark, "org.example.Nothing")


def test_a_file_is_locked_once(spark, tmp_path):
    file = str(tmp_path / "a.lock")
    unlock = spark_internals.lock_file(spark, file)
    assert unlock is not None
    assert spark_internals.lock_file(spark, file) is None
    unlock()
    again = spark_internals.lock_file(spark, file)
    assert again is not None
    again()


# Errors


def test_what_java_threw(spark):
    with pytest.raises(JavaError) as thrown:
        spark_internals.jdbc_options(spark, {"url": "jdbc:nothing:x", "dbtable": "t", "driver": "org.example.Nothing"})
    assert issubclass(JavaError, JvmError)
    assert "ClassNotFound" in spark_internals.java_exception(thrown.value).getClass().getName()
    assert "org.example.Nothing" in (spark_internals.java_message(thrown.value) or "")
    assert spark_internals.java_exception(ValueError("of Python")) is None


def test_what_pyspark_has_turned_into_an_exception_of_its_own(spark):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as thrown:
        spark.sql("SELECT nothing").collect()
    assert spark_internals.java_exception(thrown.value) is not None
    assert spark_internals.java_message(thrown.value) is None
    (only,) = spark_internals.thrown_by(thrown.value)
    assert (only.condition.partition(".")[0], only.fragment) == ("UNRESOLVED_COLUMN", "nothing")


def test_it_answers_as_long_as_it_lives(spark):
    assert spark_internals.answers(spark)


def test_the_causes_of_what_a_call_threw(spark):
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as thrown:
        spark.sql("SELECT raise_error('at ' || id) FROM range(1)").collect()
    chain = spark_internals.thrown_by(RuntimeError("outside").with_traceback(None))
    assert [(one.name, one.python) for one in chain] == [("RuntimeError", True)]
    *_, root = spark_internals.thrown_by(thrown.value)
    assert (root.name, root.condition, root.python) == ("SparkRuntimeException", "USER_RAISED_EXCEPTION", False)
    assert root.parameters == {"errorMessage": "at 0"}
    assert root.is_a("java.lang.RuntimeException")
    assert root.frames


def test_the_causes_of_what_stopped_a_query(spark, rates):
    broken = rates.selectExpr("CAST(raise_error('no rows today') AS BIGINT) AS value")
    query = broken.writeStream.format("noop").trigger(processingTime="0 seconds").start()
    with pytest.raises(Exception, match="no rows today"):
        query.awaitTermination(60)
    outermost, *_, root = spark_internals.thrown_by_query(query)
    assert outermost.name == "StreamingQueryException"
    assert root.parameters == {"errorMessage": "no rows today"}


# File systems


def test_the_default_file_system_has_a_class(spark):
    assert spark_internals.file_system_class(spark).endswith("LocalFileSystem")


def test_a_file_is_written_whole(spark, tmp_path):
    path = spark_internals.hadoop_path(spark, str(tmp_path / "a.txt"))
    conf = spark_internals.hadoop_conf(spark)
    stream = spark_internals.atomic_stream(spark, path, conf)
    stream.write(bytearray(b"whole"))
    assert not (tmp_path / "a.txt").exists()
    stream.close()
    assert (tmp_path / "a.txt").read_bytes() == b"whole"
    assert path.getFileSystem(conf).exists(path)


# Plans


def test_plans_are_told(rates):
    rows = rates.where("value > 1").select("value")
    assert json.loads(spark_internals.analyzed_json(rows))[0]["class"].endswith("Project")
    assert "Filter" in spark_internals.plan_text(rows)
    assert "== Physical Plan ==" in spark_internals.explained(rows)


def test_what_cannot_be_streamed_is_refused(rates):
    spark_internals.check_for_streaming(rates, "append")
    with pytest.raises(Exception, match="complete"):
        spark_internals.check_for_streaming(rates, "complete")


def test_the_sources_of_a_plan(spark, rates):
    beside = rates.sparkSession.range(3)
    assert spark_internals.leaves(rates) == [True]
    assert spark_internals.leaves(rates.join(beside, rates.value == beside.id)) == [True, False]


def test_patterns_in_a_plan(rates):
    assert spark_internals.has_pattern(rates.selectExpr("current_timestamp() AS at"), "CURRENT_LIKE", "PYTHON_UDF")
    assert not spark_internals.has_pattern(rates, "CURRENT_LIKE", "PYTHON_UDF")


def test_a_plan_is_optimised_once(rates):
    rows = rates.selectExpr("1 + 1 AS two", "value")
    with spark_internals.active(rates.sparkSession):
        optimised = spark_internals.optimised(rows)
    assert optimised.schema == rows.schema
    assert "2 AS two" in spark_internals.plan_text(optimised)


def test_rules_that_change_nothing(rates):
    with spark_internals.active(rates.sparkSession):
        idle = spark_internals.idle_rules(rates.selectExpr("1 + 1 AS two", "value"))
    assert "org.apache.spark.sql.catalyst.optimizer.LimitPushDown" in idle
    assert "org.apache.spark.sql.catalyst.optimizer.ConstantFolding" not in idle


def test_the_clock_of_a_row(spark):
    before = int(time.time() * 1000)
    told = spark.range(1).select(spark_internals.clock(spark).alias("now")).first().now
    assert before <= told <= int(time.time() * 1000)


# Running queries


def test_reports_of_a_query_newest_first(query):
    batches = [json.loads(report)["batchId"] for report in spark_internals.reports_since(query, -1)]
    assert batches == [1, 0]
    assert [json.loads(report)["batchId"] for report in spark_internals.reports_since(query, 0)] == [1]


def test_files_that_are_gone_when_spark_lists_them(spark, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a b.txt", "c.txt"):
        (tmp_path / "in" / name).write_text(name)
    rows = spark.readStream.text(str(tmp_path / "in"))
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))

    def ended():
        started = writer.trigger(availableNow=True).start()
        started.awaitTermination()
        return started

    assert spark_internals.files_not_listed(ended(), -1) == (0, [])
    for entry in (tmp_path / "checkpoint/commits").iterdir():
        entry.unlink()
    (tmp_path / "in/a b.txt").unlink()
    started = ended()
    assert spark_internals.files_not_listed(started, -1) == (0, [f"file:{tmp_path}/in/a b.txt"])
    assert spark_internals.files_not_listed(started, 0) is None


def test_the_newest_batch_of_each_log(query):
    assert spark_internals.newest_batch(query, "offsets") == 1
    assert spark_internals.newest_batch(query, "commits") == 1


def test_a_commit_that_is_not_on_disk_is_written(spark, tmp_path):
    """With asynchronous progress Spark writes some commits only."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    rows = rows.selectExpr("CAST(value AS STRING) AS value")
    folder = tmp_path / "checkpoint"
    started = rows.writeStream.format("noop").option("checkpointLocation", str(folder)).start()
    while spark_internals.newest_batch(started, "commits") is None:
        assert started.exception() is None
        time.sleep(0.05)
    started.stop()
    newest = spark_internals.newest_batch(started, "commits")
    for log in ("offsets", "commits"):
        (folder / log / str(newest)).unlink()
        (folder / log / f".{newest}.crc").unlink(missing_ok=True)
    spark_internals.write_newest_commit(started, spark)
    assert (folder / "offsets" / str(newest)).exists()
    assert (folder / "commits" / str(newest)).exists()


def test_a_writer_knows_its_session(rates):
    assert spark_internals.session_of(rates.writeStream) is rates.sparkSession


@pytest.mark.skipif(INSTALLED != "4.1", reason="PySpark has the trigger from 4.2 on")
def test_a_real_time_trigger_is_set(rates):
    writer = rates.writeStream.format("console").outputMode("update")
    assert spark_internals.set_real_time(writer, "5 minutes") is writer


def test_what_spark_keeps_of_executions(spark):
    def newest() -> int:
        """Not the count: Spark keeps a thousand, and then the count stays the same."""
        known = spark_internals.sql_executions(spark).executionsList()
        return -1 if known.isEmpty() else int(known.last().executionId())

    before = newest()
    spark.range(3).collect()
    deadline = time.monotonic() + 300
    while newest() == before:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _copied(session, folder, each=None):
    """A query that reads a folder once, in a thread of the JVM of its own."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in/1.txt").write_text("a\n")
    writer = session.readStream.text(str(folder / "in")).writeStream
    writer = writer.foreachBatch(each) if each else writer.format("noop")
    started = writer.option("checkpointLocation", str(folder / uuid4().hex)).trigger(availableNow=True).start()
    started.awaitTermination(300)
    return started


def test_the_connection_of_a_thread_that_has_ended_is_closed(spark, tmp_path):
    threads = []

    def each(rows, number):
        spark_internals.note_caller()
        threads.append(threading.current_thread())

    _copied(spark.newSession(), tmp_path, each)
    deadline = time.monotonic() + 60
    while threads[0].is_alive():
        assert time.monotonic() < deadline, "Python still waits for a thread that has ended"
        spark_internals.close_ended_callbacks()
        time.sleep(0.05)


def test_a_session_that_is_released_hears_of_no_query_any_more(spark, tmp_path):
    from pyspark.sql.streaming.listener import StreamingQueryListener

    heard = []

    class Heard(StreamingQueryListener):
        def onQueryStarted(self, event):
            heard.append("started")

        def onQueryProgress(self, event):
            pass

        def onQueryIdle(self, event):
            pass

        def onQueryTerminated(self, event):
            heard.append("terminated")

    session = spark.newSession()
    session.streams.addListener(spark_internals.relayed(Heard()))
    spark_internals.release_copy(_copied(session, tmp_path))
    spark_internals.release_copy(_copied(session, tmp_path))
    spark_internals.release_session(session)
    assert sorted(heard) == ["started", "started", "terminated", "terminated"]
    _copied(session, tmp_path)
    spark_internals.release_session(session)
    assert heard.count("terminated") == 2
    spark_internals.close_ended_callbacks()


# Formats, tables and databases


def test_json_documents_are_read(spark):
    texts = frame(spark, [('{"a": 1}',), ('{"b": "x"}',)], "value STRING")
    assert spark_internals.read_json(spark.read, texts).columns == ["a", "b"]


@needs("avro")
def test_an_avro_schema_is_made(spark):
    schema = json.loads(spark_internals.avro_schema(spark.range(1), "Numbers"))
    assert schema["name"] == "Numbers"
    assert [field["name"] for field in schema["fields"]] == ["id"]


def test_avro_gets_limits(spark):
    spark_internals.limit_avro_lengths(spark, {"bytes": 100_000_000, "string": 100_000_000})


@needs("delta")
def test_a_delta_table_is_known(spark, tmp_path):
    assert not spark_internals.is_delta_table(spark, str(tmp_path / "table"))
    spark.range(1).write.format("delta").save(str(tmp_path / "table"))
    assert spark_internals.is_delta_table(spark, str(tmp_path / "table"))


@needs("iceberg")
def test_an_iceberg_table_is_loaded(spark):
    table = f"lake.internals.t{uuid4().hex}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.internals")
    spark.range(1).writeTo(table).create()
    assert spark_internals.iceberg_table(spark, table).currentSnapshot() is not None


@needs("postgresql")
def test_a_database_is_known_by_its_url(spark):
    url = "jdbc:postgresql://127.0.0.1:1/nothing"
    options = spark_internals.jdbc_options(spark, {"url": url, "dbtable": "t", "driver": "org.postgresql.Driver"})
    assert options.url() == url
    assert spark_internals.jdbc_dialect(spark, url).quoteIdentifier("a b") == '"a b"'


def test_the_texts_of_a_plan(spark, tmp_path):
    rows = spark.readStream.schema("id BIGINT, at TIMESTAMP").parquet(str(tmp_path))
    late = rows.withWatermark("at", "600 seconds").groupBy("id").count()
    analysed, optimised, text, columns = spark_internals.plan_texts(late)
    assert "StreamingRelation" in analysed
    assert '"class":"org.apache.spark.sql.catalyst.plans.logical.Aggregate"' in optimised
    assert "at#" in text
    assert text.count("10 minutes") >= 1
    assert [name for _, name in columns] == ["id", "count"]
    assert columns[0][0] == spark_internals.column_ids(rows)[0]
