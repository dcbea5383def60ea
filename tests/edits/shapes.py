"""Pipelines of every shape, as text with holes: an edit fills one of them in another way."""

from __future__ import annotations

from dataclasses import dataclass, replace

COLUMNS = "id BIGINT, k STRING, k2 STRING, v BIGINT, u BIGINT, w DOUBLE, at TIMESTAMP, at2 TIMESTAMP"


@dataclass(frozen=True)
class Text:
    """A pipeline that an edit changes."""

    sql: str
    mode: str = "append"
    sink: str = "type: files, path: out, format: json"
    a: str = "a"
    """The folder of source `a`."""
    b: str = "b"
    columns: str = COLUMNS
    watermark: str = "{column: at, delay: 10 minutes}"
    watermark_b: str = "{column: at, delay: 10 minutes}"
    more: str = ""
    """Further keys of source `a`."""
    steps: str = ""
    """Further steps, before the last one."""
    names: tuple[str, str] = ("a", "b")
    extra: str = ""
    """Further lines at the top of the pipeline."""
    query: str = ""
    """Further settings of the query."""
    step: str = ""
    """The last step in place of SQL."""
    static: str = ""
    """The columns of a static source `s`."""
    files: tuple[tuple[str, str], ...] = ()
    """Modules of the project: name and text."""
    project: str = ""
    """Further lines of `penstock.yaml`."""

    def with_(self, **changes: object) -> Text:
        return replace(self, **changes)  # type: ignore[arg-type]

    @property
    def yaml(self) -> str:
        first, second = self.names
        uses_b = any(word in f"{self.sql} {self.steps} {self.step}" for word in (f" {second}", f" {second} "))
        marks = [f", watermark: {one}" if one else "" for one in (self.watermark, self.watermark_b)]
        source = "{{type: files, path: {path}, format: {{type: json, schema: '{columns}'}}{mark}{more}}}"
        lines = [
            "pipeline: p",
            *([self.extra] if self.extra else []),
            "sources:",
            f"  {first}: " + source.format(path=self.a, columns=self.columns, mark=marks[0], more=self.more),
        ]
        if uses_b:
            lines.append(f"  {second}: " + source.format(path=self.b, columns=COLUMNS, mark=marks[1], more=""))
        if self.static:
            static = f"{{type: files, read: static, path: s, format: {{type: json, schema: '{self.static}'}}}}"
            lines.append(f"  s: {static}")
        last = self.step or "{sql: " + repr_yaml(self.sql) + "}"
        lines += ["steps:", *([self.steps] if self.steps else []), f"  q: {last}"]
        lines += ["sinks:", f"  out: {{of: q, {self.sink}}}"]
        lines += [f"queries: {{q: {{mode: {self.mode}{self.query}}}}}"]
        return "\n".join(lines) + "\n"


def repr_yaml(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


TABLE = "type: delta, path: out, write: overwrite"
STATELESS = Text("SELECT id, k, v FROM a WHERE v > 0", watermark="")
COUNT = Text("SELECT k, k2, sum(v) AS s FROM a GROUP BY k, k2", "complete", TABLE, watermark="")
SUMS = Text("SELECT k, sum(v) AS s, sum(u) AS t FROM a GROUP BY k", "complete", TABLE, watermark="")
WINDOWS = Text(
    "SELECT window.start AS minute, k, count(*) AS n FROM a GROUP BY window(at, '10 minutes'), k", "complete", TABLE
)
SESSIONS = Text(
    "SELECT session_window.start AS began, k, count(*) AS n FROM a GROUP BY session_window(at, '5 minutes'), k",
    "complete",
    TABLE,
)
DISTINCT = Text("", step="{deduplicate: {of: a, keys: [k, k2]}}", watermark="")
JOIN = Text(
    "SELECT x.id, x.k, x.v, y.u FROM a x JOIN b y ON x.k = y.k AND x.at BETWEEN y.at - INTERVAL 5 minutes AND"
    " y.at + INTERVAL 5 minutes"
)
UNION = Text("SELECT id, k, v FROM a UNION ALL SELECT id, k, v FROM b", watermark="", watermark_b="")
UNION_COUNT = Text(
    "SELECT k, count(*) AS n FROM (SELECT k FROM a UNION ALL SELECT k FROM b) GROUP BY k", "complete", TABLE,
    watermark="", watermark_b="",
)  # fmt: skip
STATIC = "k STRING, k2 STRING, region STRING, rate BIGINT"
LOOKUP = Text(
    "SELECT s.region, sum(a.v) AS t FROM a JOIN s ON a.k = s.k GROUP BY s.region", "complete", TABLE, watermark="",
    static=STATIC,
)  # fmt: skip
KEYS = Text("SELECT k, count(*) AS n FROM a GROUP BY k", "complete", TABLE, watermark="")
NESTED = COLUMNS + ", tags ARRAY<STRING>, pair STRUCT<x: BIGINT, y: BIGINT>"
COUNTER = """
from pyspark.sql.streaming.stateful_processor import StatefulProcessor


class Counter(StatefulProcessor):
    def __init__(self, step=1):
        self.step = step

    def init(self, handle):
        self.total = handle.getValueState("total", "total BIGINT")

    def handleInputRows(self, key, rows, timers):
        from pyspark.sql import Row

        total = self.total.get()[0] if self.total.exists() else 0
        total += sum(row.v for row in rows) * self.step
        self.total.update((total,))
        yield Row(k=key[0], total=total)

    def close(self):
        pass
"""
PROCESS = Text(
    "", step="{process: {of: a, key: [k], with: 'shaped:Counter', output: 'k STRING, total BIGINT'}}", watermark="",
    mode="update", sink="type: delta, path: out, write: upsert, keys: [k]", files=(("shaped.py", COUNTER),),
)  # fmt: skip
TALLY = """
def tally(key, frames, state):
    import pandas as pd

    total, rows = state.get if state.exists else (0, 0)
    for frame in frames:
        total, rows = total + int(frame.v.sum()), rows + len(frame)
    state.update((total, rows))
    yield pd.DataFrame({"k": [key[0]], "total": [total], "n": [rows]})
"""
TALLIES = Text(
    "",
    step="{pandas_state: {of: a, key: [k], with: 'shaped:tally', state: 'total BIGINT, n BIGINT',"
    " output: 'k STRING, total BIGINT, n BIGINT'}}",
    watermark="", mode="update", sink="type: delta, path: out, write: upsert, keys: [k]", files=(("shaped.py", TALLY),),
)  # fmt: skip
SHOUT = "def shout(text):\n    return text.upper()\n\n\ndef other(text):\n    return text\n"
FUNCTION = Text(
    "SELECT k, count(*) AS n FROM c GROUP BY k", "complete", TABLE, watermark="",
    steps="  c: {sql: SELECT shout(k) AS k FROM a}",
    extra="functions: {shout: {python: 'words:shout', returns: STRING, kind: python, on_error: fail},"
    " other: {python: 'words:other', returns: STRING, on_error: fail}}",
    files=(("words.py", SHOUT),),
)  # fmt: skip
MAPPED = """
from pyspark.sql.functions import sum, udf

FACTOR = 1


def doubled(frames):
    for frame in frames:
        frame["v"] = frame["v"] * FACTOR
        yield frame[["k", "v"]]


def mapped(a):
    return a.select("k", "v").mapInPandas(doubled, "k string, v bigint").groupBy("k").agg(sum("v").alias("s"))


def with_udf(a):
    end = udf(lambda text: text + "!", "string")
    return a.groupBy(end("k").alias("k")).agg(sum("v").alias("s"))


def plain(a):
    return a.groupBy("k", "k2").agg(sum("v").alias("s"))
"""
PYTHON = Text("", "complete", TABLE, watermark="", step="{python: 'shaped:mapped'}", files=(("shaped.py", MAPPED),))
SLIDING = WINDOWS.with_(sql=WINDOWS.sql.replace("'10 minutes'", "'10 minutes', '5 minutes'"))
ROLLUP = Text("SELECT k, k2, sum(v) AS s FROM a GROUP BY ROLLUP (k, k2)", "complete", TABLE, watermark="")
SELF_JOIN = JOIN.with_(sql=JOIN.sql.replace("JOIN b y", "JOIN a y"))
CHAIN = Text(
    "SELECT window(window_time(w), '20 minutes').start AS began, max(n) AS n FROM"
    " (SELECT window AS w, k, count(*) AS n FROM a GROUP BY window(at, '5 minutes'), k)"
    " GROUP BY window(window_time(w), '20 minutes')",
)
WITHIN = Text("", step="{deduplicate: {of: a, keys: [k, k2], within_watermark: true}}")
GAPS = Text(
    "SELECT session_window.start AS began, k, count(*) AS n FROM a GROUP BY session_window(at,"
    " CASE WHEN k = 'x' THEN '2 minutes' ELSE '5 minutes' END), k",
    "complete",
    TABLE,
)
