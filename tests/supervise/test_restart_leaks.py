"""A query that restarts often: nothing of an earlier start is kept by Spark, by Py4J or by Python."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.supervise.query_view import Snapshot
from penstock.supervise.stopping import Stop

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: enriched
latency: low
listeners: ["user_code_of_leaks:Heard"]
sources:
  ticks: {type: rate, rows_per_second: 20}
  names: {type: files, path: names, format: {type: csv, schema: "last BIGINT, name STRING"}, read: static,
          refresh: 10 ms}
steps:
  named: {sql: "SELECT name FROM ticks JOIN names ON value % 10 = last"}
sinks:
  out: {of: named, type: python, each_batch: "user_code_of_leaks:written"}
queries:
  # Each broadcast and each adaptive stage makes a thread of a pool, which holds the session of its query for a minute.
  named: {spark: {spark.sql.autoBroadcastJoinThreshold: -1, spark.sql.adaptive.enabled: false}}
"""
STATEFUL = (
    PIPELINE.replace("SELECT name", "SELECT name, count(*) AS n")
    .replace("= last", "= last GROUP BY name")
    .replace("named: {spark", "named: {mode: update, state: {store: rocksdb}, spark")
)
USER_CODE = """
from pathlib import Path

from pyspark.sql.streaming import StreamingQueryListener


class Heard(StreamingQueryListener):
    def onQueryStarted(self, event):
        with Path(__file__).with_name("started").open("a") as file:
            file.write("x")

    def onQueryProgress(self, event):
        pass

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        pass


def written(rows, batch):
    with Path(__file__).with_name("written").open("a") as file:
        file.write("x" if rows.count() >= 0 else "")
"""
CLASSES = {
    "sessions": "org.apache.spark.sql.classic.SparkSession",
    "session states": "org.apache.spark.sql.internal.SessionState",
    "listener buses": "org.apache.spark.sql.execution.streaming.runtime.StreamingQueryListenerBus",
    "query managers": "org.apache.spark.sql.classic.StreamingQueryManager",
    "queries": "org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution",
    "callback connections": "py4j.ClientServerConnection",
    "python objects": "py4j.reflection.PythonProxyHandler",
    "state stores": "org.apache.spark.sql.execution.streaming.state.RocksDB",
    "threads": "java.lang.Thread",
}
SLACK = {"threads": 60, "sessions": 6, "session states": 6, "queries": 3, "query managers": 3}
"""What comes and goes: threads of pools, and the session that was active when a pool made one."""
STATEFUL_SLACK = dict.fromkeys((*CLASSES, "held for the JVM"), 60) | {"threads": 300, "heap in MB": 60}
"""Spark looks once a minute for state stores that no query uses, and each holds the session of its query until then."""
MEGABYTE = 1_000_000


def held(spark: Any) -> dict[str, int]:
    """What the JVM and this process hold, after both have collected their garbage."""
    for _ in range(4):  # each holds objects of the other, which lets go of them only after its own collection
        gc.collect()
        spark._jvm.java.lang.System.gc()
        time.sleep(0.5)
    table = [line.split() for line in _class_histogram(spark).splitlines()]
    counts = {row[3]: (int(row[1]), int(row[2])) for row in table if len(row) >= 4 and row[0].endswith(":")}
    found = {name: counts.get(java_class, (0, 0))[0] for name, java_class in CLASSES.items()}
    assert all((found["sessions"], found["listener buses"])), "Spark has renamed its classes"
    python = {
        "python threads": threading.active_count(),
        # Not `listTables()`, which runs a job in the middle of a query's restart.
        "views": spark._jsparkSession.sessionState().catalog().listLocalTempViews("*").size(),
        "held for the JVM": len(spark.sparkContext._gateway.gateway_property.pool),
    }
    return found | python | {"heap in MB": sum(size for _, size in counts.values()) // MEGABYTE}


def _class_histogram(spark: Any) -> str:
    """How many objects of each class are alive. The class behind the interface is hidden from Py4J."""
    jvm, new_array = spark._jvm, spark.sparkContext._gateway.new_array
    objects, strings = new_array(jvm.java.lang.Object, 1), new_array(jvm.java.lang.String, 1)
    objects[0], strings[0] = new_array(jvm.java.lang.String, 0), "[Ljava.lang.String;"
    given = [jvm.javax.management.ObjectName("com.sun.management:type=DiagnosticCommand"), "gcClassHistogram"]
    arguments = new_array(jvm.java.lang.Object, 4)
    for number, value in enumerate([*given, objects, strings]):
        arguments[number] = value
    interface = jvm.java.lang.Class.forName("javax.management.MBeanServer")
    (method,) = [one for one in interface.getMethods() if one.getName() == "invoke"]
    return str(method.invoke(jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer(), arguments))


def restarted(
    run_once: Callable[..., Any], root: Path, spark: Any, times: int, marks: tuple[int, ...]
) -> list[dict[str, int]]:
    """What is held after each of these numbers of restarts."""
    stop, seen = Stop(), list[dict[str, int]]()

    def look(snapshot: Snapshot) -> None:
        try:
            look_at(snapshot)
        except BaseException:
            stop.ask()
            raise

    def look_at(snapshot: Snapshot) -> None:
        restarts = snapshot.queries[0].restarts
        if len(seen) < len(marks) and restarts >= marks[len(seen)]:
            seen.append(held(spark))
            print(restarts, seen[-1])
        if restarts >= times and not stop.asked:
            stop.ask()

    result = run_once(root, once=False, for_seconds=7_200, stop=stop, on_snapshot=look)
    unexpected = [problem for problem in result.problems if problem.code != "SINK009"]  # it writes, and does no harm
    assert not unexpected, "\n".join(problem.message for problem in unexpected)
    assert len((root / "started").read_text()) >= times
    assert len((root / "written").read_text()) >= times // 4
    return seen


def grown(before: dict[str, int], after: dict[str, int], slack: dict[str, int]) -> dict[str, int]:
    """What there is more of than can come and go."""
    more = {name: after[name] - count for name, count in before.items()}
    return {name: count for name, count in more.items() if count > slack.get(name, 2)}


@pytest.fixture
def project(project_at: Callable[..., Path]) -> Callable[[str], Path]:
    names = "".join(f"{number},n{number}\n" for number in range(10))
    return lambda text: project_at(text, files={"names/a.csv": names, "user_code_of_leaks.py": USER_CODE})


def test_restarts_leave_nothing_behind(project, run_once, spark):
    before, after = restarted(run_once, project(PIPELINE), spark, 16, (4, 16))
    assert not grown(before, after, SLACK | {"heap in MB": 1_000}), (before, after)


@pytest.mark.proof
@pytest.mark.parametrize(("text", "slack"), [(PIPELINE, SLACK | {"heap in MB": 20}), (STATEFUL, STATEFUL_SLACK)])
def test_a_thousand_restarts_leave_nothing_behind(project, run_once, spark, text, slack):
    seen = restarted(run_once, project(text), spark, 1_000, (200, 400, 600, 800, 1_000))
    assert not grown(seen[0], seen[-1], slack), seen
