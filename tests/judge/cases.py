"""Every combination that is put before Penstock and before Spark: operation × mode × trigger × sink × join × watermark.

A case is a pipeline's text. What both say of it is compared in `verdicts.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

MODES = ("append", "update", "complete")
WATERMARK = ", watermark: {column: ts, delay: 10 minutes}"
ROWS = '{type: parquet, schema: "ts TIMESTAMP, k BIGINT, v BIGINT"}'

OPERATIONS = {
    "project": "SELECT ts, k + 1 AS k FROM a",
    "filter": "SELECT * FROM a WHERE v > 0",
    "explode": "SELECT k, explode(array(v, v)) AS v FROM a",
    "case and cast": "SELECT CASE WHEN v > 0 THEN cast(v AS STRING) END AS v FROM a",
    "clock": "SELECT k, current_timestamp() AS now FROM a",
    "row id": "SELECT monotonically_increasing_id() AS id, k FROM a",
    "count": "SELECT count(*) AS n FROM a",
    "count by key": "SELECT k, count(*) AS n FROM a GROUP BY k",
    "count by key, all": "SELECT k, count(*) AS n FROM a GROUP BY ALL",
    "count by key, ordinal": "SELECT k, count(*) AS n FROM a GROUP BY 1",
    "count by event time": "SELECT ts, count(*) AS n FROM a GROUP BY ts",
    "count by renamed event time": "SELECT t, count(*) AS n FROM (SELECT ts AS t FROM a) GROUP BY t",
    "count by cast event time": "SELECT cast(ts AS DATE) AS d, count(*) AS n FROM a GROUP BY cast(ts AS DATE)",
    "tumbling": "SELECT window, count(*) AS n FROM a GROUP BY window(ts, '5 minutes')",
    "tumbling, alias": "SELECT window(ts, '5 minutes') AS w, count(*) AS n FROM a GROUP BY w",
    "tumbling by key": "SELECT window.start AS s, k, sum(v) AS n FROM a GROUP BY window(ts, '5 minutes'), k",
    "sliding": "SELECT window, count(*) AS n FROM a GROUP BY window(ts, '10 minutes', '5 minutes')",
    "session by key": "SELECT session_window.start AS s, k, count(*) AS n FROM a"
    " GROUP BY session_window(ts, '5 minutes'), k",
    "session, dynamic gap": "SELECT session_window.start AS s, k, count(*) AS n FROM a"
    " GROUP BY session_window(ts, CASE WHEN v > 0 THEN '1 minute' ELSE '5 minutes' END), k",
    "session alone": "SELECT session_window.start AS s, count(*) AS n FROM a GROUP BY session_window(ts, '5 minutes')",
    "having": "SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > 1",
    "approximate distinct": "SELECT k, approx_count_distinct(v) AS n FROM a GROUP BY k",
    "distinct aggregate": "SELECT k, count(DISTINCT v) AS n FROM a GROUP BY k",
    "distinct in a window": "SELECT window, count(DISTINCT v) AS n FROM a GROUP BY window(ts, '5 minutes')",
    "rollup": "SELECT k, v, count(*) AS n FROM a GROUP BY ROLLUP (k, v)",
    "grouping sets": "SELECT k, v, count(*) AS n FROM a GROUP BY GROUPING SETS ((k), (v))",
    "select distinct": "SELECT DISTINCT k FROM a",
    "select distinct with event time": "SELECT DISTINCT ts, k FROM a",
    "window of windows": "SELECT window(w, '1 hour') AS h, sum(n) AS n"
    " FROM (SELECT window AS w, count(*) AS n FROM a GROUP BY window(ts, '5 minutes')) GROUP BY window(w, '1 hour')",
    "window over window_time": "SELECT window(window_time(w), '1 hour') AS h, sum(n) AS n"
    " FROM (SELECT window AS w, count(*) AS n FROM a GROUP BY window(ts, '5 minutes'))"
    " GROUP BY window(window_time(w), '1 hour')",
    "group of groups": "SELECT n, count(*) AS m FROM (SELECT k, count(*) AS n FROM a GROUP BY k) GROUP BY n",
    "window then key": "SELECT n, count(*) AS m FROM"
    " (SELECT window, count(*) AS n FROM a GROUP BY window(ts, '5 minutes')) GROUP BY n",
    "sort": "SELECT * FROM a ORDER BY v",
    "sort aggregated": "SELECT k, count(*) AS n FROM a GROUP BY k ORDER BY n",
    "sort by partition": "SELECT * FROM a SORT BY v",
    "limit": "SELECT * FROM a LIMIT 3",
    "limit aggregated": "SELECT k, count(*) AS n FROM a GROUP BY k LIMIT 3",
    "top": "SELECT k, count(*) AS n FROM a GROUP BY k ORDER BY n LIMIT 3",
    "offset": "SELECT * FROM a LIMIT 3 OFFSET 1",
    "sample": "SELECT * FROM a TABLESAMPLE (50 PERCENT)",
    "window function": "SELECT *, row_number() OVER (PARTITION BY k ORDER BY ts) AS r FROM a",
    "running sum": "SELECT *, sum(v) OVER (PARTITION BY k) AS s FROM a",
    "union": "SELECT k FROM a UNION ALL SELECT k FROM b",
    "union distinct": "SELECT k FROM a UNION SELECT k FROM b",
    "union with static": "SELECT k FROM a UNION ALL SELECT k FROM s",
    "union then window": "SELECT window, count(*) AS n FROM (SELECT ts FROM a UNION ALL SELECT ts FROM b)"
    " GROUP BY window(ts, '5 minutes')",
    "except": "SELECT k FROM a EXCEPT SELECT k FROM b",
    "except static": "SELECT k FROM a EXCEPT SELECT k FROM s",
    "except all": "SELECT k FROM a EXCEPT ALL SELECT k FROM s",
    "intersect": "SELECT k FROM a INTERSECT SELECT k FROM b",
    "intersect static": "SELECT k FROM a INTERSECT SELECT k FROM s",
    "in static": "SELECT * FROM a WHERE k IN (SELECT k FROM s)",
    "not in static": "SELECT * FROM a WHERE k NOT IN (SELECT k FROM s)",
    "exists static": "SELECT * FROM a WHERE EXISTS (SELECT 1 FROM s WHERE s.k = a.k)",
    "scalar of static": "SELECT k, (SELECT max(v) FROM s) AS m FROM a",
    "in stream": "SELECT * FROM a WHERE k IN (SELECT k FROM b)",
    "scalar of stream": "SELECT k, (SELECT max(v) FROM b) AS m FROM s",
    "cte": "WITH x AS (SELECT * FROM a) SELECT window, count(*) AS n FROM x GROUP BY window(ts, '5 minutes')",
    "self join": "SELECT x.k FROM a x JOIN a y ON x.k = y.k",
    "join then window": "SELECT window, count(*) AS n FROM (SELECT a.ts AS ts FROM a JOIN b ON a.k = b.k"
    " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR) GROUP BY window(ts, '5 minutes')",
    "outer join then window": "SELECT window, count(*) AS n FROM (SELECT a.ts AS ts FROM a LEFT JOIN b ON a.k = b.k"
    " AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR) GROUP BY window(ts, '5 minutes')",
    "windows then join": "SELECT x.n, y.n AS m FROM"
    " (SELECT window, count(*) AS n FROM a GROUP BY window(ts, '5 minutes')) x"
    " JOIN (SELECT window, count(*) AS n FROM b GROUP BY window(ts, '5 minutes')) y ON x.window = y.window",
    "chain of joins": "SELECT a.k FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR"
    " JOIN a AS c ON a.k = c.k AND c.ts BETWEEN a.ts AND a.ts + INTERVAL 1 HOUR",
    "join static then window": "SELECT window, s.v, count(*) AS n FROM a JOIN s ON a.k = s.k"
    " GROUP BY window(a.ts, '5 minutes'), s.v",
    "window then join static": "SELECT x.n, s.v FROM (SELECT k, window, count(*) AS n FROM a"
    " GROUP BY window(ts, '5 minutes'), k) x JOIN s ON x.k = s.k",
}
"""By name, a SELECT over two streams `a` and `b` and a static table `s`, each with `ts`, `k` and `v`."""

STEPS = {
    "duplicates": "deduplicate: {of: a, keys: [k]}",
    "duplicates with event time": "deduplicate: {of: a, keys: [k, ts]}",
    "duplicates within watermark": "deduplicate: {of: a, keys: [k], within_watermark: true}",
    "process": "process: {of: a, key: [k], with: 'judged:Nothing', output: 'k BIGINT'}",
    "process, processing time": "process: {of: a, key: [k], with: 'judged:Nothing', time: processing_time,"
    " output: 'k BIGINT'}",
    "process, event time": "process: {of: a, key: [k], with: 'judged:Nothing', time: event_time, output: 'k BIGINT'}",
    "pandas state, append": "pandas_state: {of: a, key: [k], with: 'judged:nothing', output: 'k BIGINT',"
    " state: 'n BIGINT', mode: append}",
    "pandas state, update": "pandas_state: {of: a, key: [k], with: 'judged:nothing', output: 'k BIGINT',"
    " state: 'n BIGINT', mode: update}",
    "pandas state, event time": "pandas_state: {of: a, key: [k], with: 'judged:nothing', output: 'k BIGINT',"
    " state: 'n BIGINT', mode: append, timeout: event_time}",
}
"""By name, a step that SQL has no word for."""

AFTER = {
    "": "",
    " then count": "SELECT k, count(*) AS n FROM first_step GROUP BY k",
}

JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
SIDES = (("a", "b"), ("a", "s"), ("s", "a"))
BOUNDS = {
    "key": "l.k = r.k",
    "key and event time": "l.k = r.k AND l.ts = r.ts",
    "bound": "l.k = r.k AND r.ts >= l.ts AND r.ts <= l.ts + INTERVAL 1 HOUR",
    "between": "l.k = r.k AND r.ts BETWEEN l.ts - INTERVAL 1 MINUTE AND l.ts + INTERVAL 1 HOUR",
    "half a bound": "l.k = r.k AND r.ts >= l.ts",
}

MODULE = '''\
"""What the cases name."""

from pyspark.sql.streaming.stateful_processor import StatefulProcessor


class Nothing(StatefulProcessor):
    def init(self, handle):
        self.handle = handle

    def handleInputRows(self, key, rows, timer_values):
        yield from ()

    def close(self):
        pass


def nothing(key, frames, state):
    yield from ()
'''


@dataclass(frozen=True)
class Case:
    """One combination."""

    family: str
    name: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.family}: {self.name}"


def cases() -> tuple[Case, ...]:
    """All of them, always in the same order."""
    return (*_operations(), *_steps(), *_joins(), *_sinks(), *_continuous(), *_real_time())


def _operations() -> Iterator[Case]:
    for (name, sql), mode in product(OPERATIONS.items(), MODES):
        # Without event time in it, or where rows need not be final, a watermark changes nothing.
        for watermark in (False, True) if "ts" in sql and mode == "append" else (True,):
            text = pipeline(f"q: {{sql: {sql!r}}}", mode, watermark)
            yield Case("operation", f"{name}, {_with(watermark)}, {mode}", text)


def _steps() -> Iterator[Case]:
    for (name, step), (after, sql), mode, watermark in product(STEPS.items(), AFTER.items(), MODES, (False, True)):
        steps = f"first_step: {{{step}}}" + (f", q: {{sql: {sql!r}}}" if after else "")
        text = pipeline(steps, mode, watermark, of="q" if after else "first_step")
        yield Case("step", f"{name}{after}, {_with(watermark)}, {mode}", text)


def _joins() -> Iterator[Case]:
    kinds = {"a": "stream", "b": "stream", "s": "static"}
    for join, (left, right), bound, watermark, mode in product(JOINS, SIDES, BOUNDS, (False, True), MODES):
        static = "s" in (left, right)
        if static and (bound != "key" or not watermark):
            continue  # time bounds nothing there
        if not static and mode != "append" and not (bound == "bound" and watermark):
            continue  # in other modes it is refused or not whatever the bound is
        sql = f"SELECT l.k FROM {left} l {join} {right} r ON {BOUNDS[bound]}"
        name = f"{kinds[left]} {join} {kinds[right]}, {bound}, {_with(watermark)}, {mode}"
        yield Case("join", name, pipeline(f"q: {{sql: {sql!r}}}", mode, watermark))


SINKS = {
    "console": "type: console",
    "memory": "type: memory",
    "files": "type: files, path: out, format: json",
    "python, batches": "type: python, each_batch: 'judged_sinks:batch'",
    "python, rows": "type: python, foreach: 'judged_sinks:row'",
}
TRIGGERS = ("default", "1 second", "once", "available_now")


def _sinks() -> Iterator[Case]:
    kinds = {"rows": "SELECT k FROM a", "groups": OPERATIONS["count by key"], "windows": OPERATIONS["tumbling by key"]}
    for (name, sink), (kind, sql), mode, trigger in product(SINKS.items(), kinds.items(), MODES, TRIGGERS):
        if kind != "groups" and trigger != "available_now":
            continue
        text = pipeline(f"q: {{sql: {sql!r}}}", mode, True, sink=sink, trigger=trigger)
        yield Case("sink", f"{kind} to {name}, {mode}, trigger {trigger}", text)


CONTINUOUS = {
    "project": "SELECT value + 1 AS v FROM a",
    "filter": "SELECT * FROM a WHERE value > 1",
    "clock": "SELECT value, current_timestamp() AS now FROM a",
    "explode": "SELECT explode(array(value, value)) AS v FROM a",
    "count": "SELECT count(*) AS n FROM a",
    "distinct": "SELECT DISTINCT value FROM a",
    "limit": "SELECT * FROM a LIMIT 3",
    "union": "SELECT value FROM a UNION ALL SELECT value FROM b",
    "join": "SELECT a.value FROM a JOIN b ON a.value = b.value",
    "row id": "SELECT monotonically_increasing_id() AS id FROM a",
}
"""Over streams of `rate`, the one source that both modes of processing can do without a broker."""


def _continuous() -> Iterator[Case]:
    def case(name: str, sql: str, mode: str = "append", sink: str = "type: memory", source: str = "type: rate") -> Case:
        trigger = "{continuous: 1 second}"
        return Case("continuous", name, _streams(sql, mode, sink, trigger, f"{{{source}}}"))

    for name, sql in CONTINUOUS.items():
        yield case(name, sql)
    project = CONTINUOUS["project"]
    for mode in MODES[1:]:
        yield case(f"project, {mode}", project, mode)
    for sink, keys in SINKS.items():
        yield case(f"project to {sink}", project, sink=keys)
    yield case("count, complete", CONTINUOUS["count"], "complete")
    yield case("with a watermark", project, source="type: rate, watermark: {column: timestamp, delay: 1 minute}")
    yield case("from files", "SELECT value FROM a", source="type: files, path: in, format: text")


KAFKA = "type: kafka, servers: '${JUDGE_KAFKA}', topics: [TOPIC], format: raw, metadata: [key, timestamp]"
KAFKA_SINK = "type: kafka, servers: '${JUDGE_KAFKA}', topic: out"
REAL_TIME = {
    "project": "SELECT value FROM a",
    "filter": "SELECT value FROM a WHERE length(value) > 1",
    "explode": "SELECT explode(array(value, value)) AS value FROM a",
    "clock": "SELECT cast(current_timestamp() AS STRING) AS value FROM a",
    "union": "SELECT value FROM a UNION ALL SELECT value FROM b",
    "union of one source": "SELECT value FROM a UNION ALL SELECT value FROM a",
    "join static": "SELECT a.value FROM a JOIN s ON cast(a.value AS STRING) = s.value",
    "count by key": "SELECT cast(count(*) AS STRING) AS value FROM a GROUP BY _key",
    "count by window": "SELECT cast(count(*) AS STRING) AS value FROM a GROUP BY window(_timestamp, '1 minute')",
    "count before union": "SELECT cast(count(*) AS STRING) AS value FROM a GROUP BY _key UNION ALL SELECT value FROM b",
    "distinct": "SELECT DISTINCT value FROM a",
    "session": "SELECT cast(count(*) AS STRING) AS value FROM a GROUP BY session_window(_timestamp, '1 minute'), _key",
    "limit": "SELECT value FROM a LIMIT 3",
    "sort": "SELECT value FROM a ORDER BY value",
    "join of streams": "SELECT a.value FROM a JOIN b ON a._key = b._key",
    "row number": "SELECT value, row_number() OVER (PARTITION BY _key ORDER BY _timestamp) AS r FROM a",
}
"""Over two topics and a static table."""


def _real_time() -> Iterator[Case]:
    def case(
        name: str,
        sql: str,
        mode: str = "update",
        sink: str = KAFKA_SINK,
        every: str = "5 seconds",
        source: str = KAFKA,
        **more: str,
    ) -> Case:
        trigger = f"{{real_time: {every}}}"
        return Case("real time", name, _streams(sql, mode, sink, trigger, f"{{{source}}}", **more))

    for name, sql in REAL_TIME.items():
        yield case(name, sql)
    project = REAL_TIME["project"]
    for mode in ("append", "complete"):
        yield case(f"project, {mode}", project, mode)
    for sink, keys in SINKS.items():
        yield case(f"project to {sink}", project, sink=keys)
    yield case("batches of a second", project, every="1 second")
    for limit in ("max_offsets_per_trigger: 9", "min_offsets_per_trigger: 1", "min_partitions: 2"):
        yield case(f"a source with {limit}", project, source=f"{KAFKA}, {limit}")
    yield case("a function in Python", "SELECT shout(cast(value AS STRING)) AS value FROM a",
               functions="functions: {shout: {python: 'judged_sinks:shout', returns: STRING, on_error: fail}}"
               )  # fmt: skip
    steps = "first_step: {deduplicate: {of: a, keys: [_key], within_watermark: true}}"
    yield case("duplicates within watermark", "SELECT value FROM first_step", steps=steps)
    yield case("duplicates", "SELECT value FROM first_step", steps="first_step: {deduplicate: {of: a, keys: [_key]}}")
    process = "first_step: {process: {of: a, key: [_key], with: 'judged:Nothing', output: 'value STRING'}}"
    yield case("process", "SELECT value FROM first_step", steps=process)


def _streams(sql: str, mode: str, sink: str, trigger: str, source: str, functions: str = "", steps: str = "") -> str:
    mark = WATERMARK.replace("column: ts", "column: _timestamp")
    timed = "kafka" in source and ("window(" in sql or "within_watermark" in steps)
    marked = f"{source[:-1]}{mark}}}" if timed else source
    return f"""\
pipeline: judged
{functions}
sources:
  a: {marked.replace("TOPIC", "a")}
  b: {marked.replace("TOPIC", "b")}
  s: {{type: files, path: in, format: text, read: static}}
steps: {{{steps + ", " if steps else ""}q: {{sql: {sql!r}}}}}
sinks: {{out: {{of: q, {sink}}}}}
queries: {{q: {{mode: {mode}, trigger: {trigger}}}}}
"""


def pipeline(
    steps: str, mode: str, watermark: bool, of: str = "q", sink: str = "type: memory", trigger: str = "available_now"
) -> str:
    mark = WATERMARK if watermark else ""
    return f"""\
pipeline: judged
sources:
  a: {{type: files, path: in, format: {ROWS}{mark}}}
  b: {{type: files, path: in, format: {ROWS}{mark}}}
  s: {{type: files, path: in, format: {ROWS}, read: static}}
steps: {{{steps}}}
sinks: {{out: {{of: {of}, {sink}}}}}
queries: {{{of}: {{mode: {mode}, trigger: {trigger}}}}}
"""


def _with(watermark: bool) -> str:
    return "watermark" if watermark else "no watermark"
