"""Edits that users make on pipelines with a living checkpoint, and what is true of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.edits.shapes import (
    CHAIN,
    COLUMNS,
    COUNT,
    COUNTER,
    DISTINCT,
    FUNCTION,
    GAPS,
    JOIN,
    KEYS,
    LOOKUP,
    MAPPED,
    NESTED,
    PROCESS,
    PYTHON,
    ROLLUP,
    SELF_JOIN,
    SESSIONS,
    SHOUT,
    SLIDING,
    STATELESS,
    STATIC,
    SUMS,
    TALLIES,
    TALLY,
    UNION,
    UNION_COUNT,
    WINDOWS,
    WITHIN,
    Text,
)

Truth = Literal["same", "from_here", "breaks"]
"""`same`: the rows equal those of a fresh run over all input. `from_here`: a filter, a delay, a mode or an output
differs from here on, as it must. `breaks`: Spark fails, or the rows are wrong."""


@dataclass(frozen=True)
class Edit:
    """What changes, and what is true of it."""

    name: str
    before: Text
    after: Text
    truth: Truth


def _sql(base: Text, old: str, new: str) -> Text:
    assert old in base.sql, (old, base.sql)
    return base.with_(sql=base.sql.replace(old, new))


EDITS: tuple[Edit, ...] = (
    # Harmless: how it is written.
    Edit("stateless: nothing", STATELESS, STATELESS, "same"),
    Edit("stateless: layout and comments", STATELESS, _sql(STATELESS, "WHERE", "/* why */  WHERE"), "same"),
    Edit("count: alias of the table", COUNT, _sql(COUNT, "FROM a", "FROM a AS t"), "same"),
    Edit("count: renamed output of a table that does not widen", COUNT, _sql(COUNT, "AS s", "AS total"), "breaks"),
    Edit("count: through a subquery", COUNT, _sql(COUNT, "FROM a", "FROM (SELECT * FROM a) z"), "same"),
    Edit("count: through a WITH", COUNT, COUNT.with_(sql="WITH z AS (SELECT * FROM a) " + COUNT.sql.replace("FROM a", "FROM z")), "same"),
    Edit("count: key moved to the end of SELECT", COUNT, _sql(COUNT, "k, k2, sum(v) AS s", "sum(v) AS s, k2, k"), "same"),
    Edit("windows: 600 seconds for 10 minutes", WINDOWS, _sql(WINDOWS, "10 minutes", "600 seconds"), "same"),
    Edit("join: commuted equality", JOIN, _sql(JOIN, "x.k = y.k", "y.k = x.k"), "same"),
    Edit("join: other aliases", JOIN, JOIN.with_(sql=JOIN.sql.replace("x.", "l.").replace("y.", "r.").replace(" x ", " l ").replace(" y ", " r ")), "same"),
    Edit("count: rate limit", COUNT, COUNT.with_(more=", max_files_per_trigger: 1"), "same"),
    Edit("count: a column added to the source", COUNT, COUNT.with_(columns=COLUMNS + ", z STRING"), "same"),
    Edit("stateless: a column added to the source", STATELESS, STATELESS.with_(columns=COLUMNS + ", z STRING"), "same"),
    Edit("stateless: a column removed from the source", STATELESS, STATELESS.with_(columns=COLUMNS.replace(", w DOUBLE", "")), "same"),
    Edit("count: a step in between", COUNT, _sql(COUNT, "FROM a", "FROM c").with_(steps="  c: {sql: SELECT * FROM a}"), "same"),
    Edit("count: HAVING that keeps all", COUNT, COUNT.with_(sql=COUNT.sql + " HAVING sum(v) > -1000000"), "same"),
    Edit("sums: an expression over the sum", SUMS, _sql(SUMS, "sum(v) AS s", "sum(v) + 1 AS s"), "same"),
    Edit("sums: a key without a name in SELECT", SUMS, _sql(SUMS, "k, sum(v)", "upper(k) AS k, sum(v)"), "same"),
    Edit("source renamed", COUNT, _sql(COUNT, "FROM a", "FROM orders").with_(names=("orders", "b")), "same"),
    # What must change from here on.
    Edit("stateless: filter", STATELESS, _sql(STATELESS, "v > 0", "v > 2"), "from_here"),
    Edit("stateless: another expression", STATELESS, _sql(STATELESS, ", v FROM", ", v * 2 AS v FROM"), "from_here"),
    Edit("stateless: another column", STATELESS, _sql(STATELESS, ", v FROM", ", v, u FROM"), "from_here"),
    Edit("count: filter before it", COUNT, _sql(COUNT, "GROUP BY", "WHERE v > 1 GROUP BY"), "from_here"),
    Edit("join: filter on one side", JOIN, JOIN.with_(sql=JOIN.sql + " WHERE x.v > 1"), "from_here"),
    Edit("windows: watermark delay", WINDOWS, WINDOWS.with_(watermark="{column: at, delay: 20 minutes}"), "from_here"),
    Edit("deduplication: another column through it", DISTINCT, DISTINCT.with_(steps="  c: {sql: 'SELECT id, k, k2, v + 1 AS v FROM a'}", step="{deduplicate: {of: c, keys: [k, k2]}}"), "from_here"),
    # What breaks: keys.
    Edit("count: key replaced", COUNT, _sql(COUNT, "GROUP BY k, k2", "GROUP BY k, k2 || 'x'").with_(sql="SELECT k, k2 || 'x' AS k2, sum(v) AS s FROM a GROUP BY k, k2 || 'x'"), "breaks"),
    Edit("count: keys reordered", COUNT, _sql(COUNT, "GROUP BY k, k2", "GROUP BY k2, k"), "breaks"),
    Edit("count: keys exchanged in meaning", COUNT, COUNT.with_(sql="SELECT k2 AS k, k AS k2, sum(v) AS s FROM a GROUP BY k2, k"), "breaks"),
    Edit("count: key added", COUNT, COUNT.with_(sql="SELECT k, k2, u, sum(v) AS s FROM a GROUP BY k, k2, u"), "breaks"),
    Edit("count: key removed", COUNT, COUNT.with_(sql="SELECT k, sum(v) AS s FROM a GROUP BY k"), "breaks"),
    Edit("count: key of another type", COUNT, COUNT.with_(sql="SELECT k, u, sum(v) AS s FROM a GROUP BY k, u"), "breaks"),
    Edit("count: key cast", COUNT, COUNT.with_(sql="SELECT k, upper(k2) AS k2, sum(v) AS s FROM a GROUP BY k, upper(k2)"), "breaks"),
    Edit("count: key changed in an earlier step", COUNT.with_(steps="  c: {sql: 'SELECT k, k2, v FROM a'}", sql="SELECT k, k2, sum(v) AS s FROM c GROUP BY k, k2"), COUNT.with_(steps="  c: {sql: 'SELECT k2 AS k, k AS k2, v FROM a'}", sql="SELECT k, k2, sum(v) AS s FROM c GROUP BY k, k2"), "breaks"),
    # What breaks: functions.
    Edit("sums: max for sum", SUMS, _sql(SUMS, "sum(v) AS s", "max(v) AS s"), "breaks"),
    Edit("sums: another argument", SUMS, _sql(SUMS, "sum(v) AS s", "sum(v * 100) AS s"), "breaks"),
    Edit("sums: exchanged", SUMS, SUMS.with_(sql="SELECT k, sum(u) AS t, sum(v) AS s FROM a GROUP BY k"), "breaks"),
    Edit("sums: exchanged in meaning", SUMS, SUMS.with_(sql="SELECT k, sum(u) AS s, sum(v) AS t FROM a GROUP BY k"), "breaks"),
    Edit("sums: one added", SUMS, _sql(SUMS, " FROM a", ", max(v) AS m FROM a"), "breaks"),
    Edit("sums: one removed", SUMS, _sql(SUMS, ", sum(u) AS t", ""), "breaks"),
    Edit("sums: avg for sum", SUMS, _sql(SUMS, "sum(v) AS s", "avg(v) AS s"), "breaks"),
    Edit("sums: FILTER", SUMS, _sql(SUMS, "sum(v) AS s", "sum(v) FILTER (WHERE u > 1) AS s"), "breaks"),
    Edit("sums: another column changed before it", SUMS.with_(steps="  c: {sql: 'SELECT k, v, u FROM a'}", sql="SELECT k, sum(v) AS s FROM c GROUP BY k"), SUMS.with_(steps="  c: {sql: 'SELECT k, u AS v, u FROM a'}", sql="SELECT k, sum(v) AS s FROM c GROUP BY k"), "breaks"),
    Edit("subquery: another aggregate chosen above", SUMS.with_(sql="SELECT k, s FROM (SELECT k, sum(v) AS s, sum(u) AS t FROM a GROUP BY k)"), SUMS.with_(sql="SELECT k, t AS s FROM (SELECT k, sum(v) AS s, sum(u) AS t FROM a GROUP BY k)"), "breaks"),
    # What breaks: windows, sessions, watermarks.
    Edit("windows: length", WINDOWS, _sql(WINDOWS, "10 minutes", "5 minutes"), "breaks"),
    Edit("windows: slide", WINDOWS, _sql(WINDOWS, "'10 minutes'", "'10 minutes', '5 minutes'"), "breaks"),
    Edit("windows: another time column", WINDOWS, _sql(WINDOWS, "window(at,", "window(at2,"), "breaks"),
    Edit("windows: watermark and window moved", WINDOWS, _sql(WINDOWS, "window(at,", "window(at2,").with_(watermark="{column: at2, delay: 10 minutes}"), "breaks"),
    Edit("windows: offset", WINDOWS, _sql(WINDOWS, "'10 minutes'", "'10 minutes', '10 minutes', '1 minute'"), "breaks"),
    Edit("sessions: gap", SESSIONS, _sql(SESSIONS, "5 minutes", "1 minute"), "breaks"),
    Edit("sessions: tumbling instead", SESSIONS, WINDOWS, "breaks"),
    # What breaks: joins and deduplication.
    Edit("join: another key", JOIN, _sql(JOIN, "x.k = y.k", "x.k2 = y.k2"), "breaks"),
    Edit("join: a second key", JOIN, _sql(JOIN, "x.k = y.k", "x.k = y.k AND x.k2 = y.k2"), "breaks"),
    Edit("join: another column above", JOIN, _sql(JOIN, "x.v,", "x.u AS v,"), "breaks"),
    Edit("join: more columns", JOIN, _sql(JOIN, "x.v,", "x.v, x.w,"), "breaks"),
    Edit("join: left outer", JOIN, _sql(JOIN, "a x JOIN", "a x LEFT JOIN"), "breaks"),
    Edit("join: sides swapped", JOIN, _sql(JOIN, "FROM a x JOIN b y", "FROM b y JOIN a x"), "breaks"),
    Edit("join: wider time bound", JOIN, _sql(JOIN, "y.at - INTERVAL 5 minutes", "y.at - INTERVAL 30 minutes"), "breaks"),
    Edit("deduplication: keys reordered", DISTINCT, DISTINCT.with_(step="{deduplicate: {of: a, keys: [k2, k]}}"), "breaks"),
    Edit("deduplication: fewer keys", DISTINCT, DISTINCT.with_(step="{deduplicate: {of: a, keys: [k]}}"), "breaks"),
    Edit("deduplication: other keys", DISTINCT, DISTINCT.with_(step="{deduplicate: {of: a, keys: [k, u]}}"), "breaks"),
    # What breaks: kinds.
    Edit("stateless to aggregation", STATELESS, SUMS.with_(sink=STATELESS.sink.replace("out", "out2")), "breaks"),
    Edit("aggregation to stateless", SUMS, STATELESS.with_(sink="type: delta, path: out"), "breaks"),
    Edit("stateless to deduplication", STATELESS, DISTINCT, "breaks"),
    Edit("count to distinct", COUNT, COUNT.with_(sql="SELECT DISTINCT k, k2 FROM a"), "breaks"),
    # What breaks: sources.
    Edit("union: swapped", UNION, UNION.with_(sql="SELECT id, k, v FROM b UNION ALL SELECT id, k, v FROM a"), "breaks"),
    Edit("union: branch added", STATELESS.with_(sql="SELECT id, k, v FROM a"), UNION, "breaks"),
    Edit("union: branch removed", UNION, STATELESS.with_(sql="SELECT id, k, v FROM a"), "breaks"),
    Edit("union: aggregated, swapped", UNION_COUNT, UNION_COUNT.with_(sql="SELECT k, count(*) AS n FROM (SELECT k FROM b UNION ALL SELECT k FROM a) GROUP BY k"), "breaks"),
    Edit("union: another column of one branch", UNION_COUNT, UNION_COUNT.with_(sql="SELECT k, count(*) AS n FROM (SELECT k FROM a UNION ALL SELECT k2 FROM b) GROUP BY k"), "breaks"),
    Edit("source: another folder", STATELESS, STATELESS.with_(a="b"), "breaks"),
    # What breaks: sinks.
    Edit("sink: files to delta at one path", STATELESS, STATELESS.with_(sink="type: delta, path: out"), "breaks"),
    Edit("sink: another folder", STATELESS, STATELESS.with_(sink="type: files, path: out2, format: json"), "breaks"),
    Edit("sink: another table", SUMS.with_(mode="update", sink="type: delta, path: out, write: upsert, keys: [k]"), SUMS.with_(mode="update", sink="type: delta, path: out2, write: upsert, keys: [k]"), "breaks"),
    # Tables that a stream is joined with.
    Edit("lookup: nothing", LOOKUP, LOOKUP, "same"),
    Edit("lookup: found by another column", LOOKUP, _sql(LOOKUP, "a.k = s.k", "a.k2 = s.k2"), "breaks"),
    Edit("lookup: left outer", LOOKUP, _sql(LOOKUP, "a JOIN s", "a LEFT JOIN s"), "breaks"),
    Edit("lookup: a column added to the table", LOOKUP, LOOKUP.with_(static=STATIC + ", more STRING"), "same"),
    Edit("lookup: another column of the table is the key", LOOKUP, _sql(LOOKUP, "SELECT s.region", "SELECT s.k2 AS region").with_(sql="SELECT s.k2 AS region, sum(a.v) AS t FROM a JOIN s ON a.k = s.k GROUP BY s.k2"), "breaks"),
    Edit("lookup: added, and nothing reads its columns", KEYS, KEYS.with_(sql="SELECT a.k, count(*) AS n FROM a JOIN s ON a.k = s.k GROUP BY a.k", static=STATIC), "breaks"),
    Edit("lookup: a semi join before the count", KEYS, KEYS.with_(sql="SELECT k, count(*) AS n FROM a WHERE k IN (SELECT k FROM s) GROUP BY k", static=STATIC), "from_here"),
    # Rows that are multiplied.
    Edit("explode: added, and nothing reads its column", KEYS.with_(columns=NESTED), KEYS.with_(columns=NESTED, sql="SELECT k, count(*) AS n FROM a LATERAL VIEW explode(tags) t AS tag GROUP BY k"), "breaks"),
    Edit("explode: of another column", KEYS.with_(columns=NESTED, sql="SELECT tag, count(*) AS n FROM a LATERAL VIEW explode(tags) t AS tag GROUP BY tag"), KEYS.with_(columns=NESTED, sql="SELECT tag, count(*) AS n FROM a LATERAL VIEW explode(array(k)) t AS tag GROUP BY tag"), "breaks"),
    Edit("explode: another name of its column", KEYS.with_(columns=NESTED, sql="SELECT tag, count(*) AS n FROM a LATERAL VIEW explode(tags) t AS tag GROUP BY tag"), KEYS.with_(columns=NESTED, sql="SELECT word AS tag, count(*) AS n FROM a LATERAL VIEW explode(tags) z AS word GROUP BY word"), "same"),
    Edit("rollup: nothing", ROLLUP, ROLLUP, "same"),
    Edit("rollup: cube", ROLLUP, _sql(ROLLUP, "ROLLUP", "CUBE"), "breaks"),
    Edit("sliding windows: nothing", SLIDING, SLIDING, "same"),
    Edit("sliding windows: slide", SLIDING, _sql(SLIDING, "'5 minutes'", "'2 minutes'"), "breaks"),
    Edit("union: with itself", KEYS, KEYS.with_(sql="SELECT k, count(*) AS n FROM (SELECT k FROM a UNION ALL SELECT k FROM a) GROUP BY k"), "breaks"),
    # Processors.
    Edit("process: nothing", PROCESS, PROCESS, "same"),
    Edit("process: another key", PROCESS, PROCESS.with_(step=PROCESS.step.replace("key: [k]", "key: [k2]")), "breaks"),
    Edit("process: a column of another meaning", PROCESS, PROCESS.with_(steps="  c: {sql: 'SELECT k, v * 100 AS v FROM a'}", step=PROCESS.step.replace("of: a", "of: c")), "breaks"),
    Edit("process: a column added", PROCESS, PROCESS.with_(columns=COLUMNS + ", z STRING"), "same"),
    Edit("process: its code", PROCESS, PROCESS.with_(files=(("shaped.py", COUNTER.replace("* self.step", "* self.step * 1")),)), "from_here"),
    Edit("process: its options", PROCESS, PROCESS.with_(step=PROCESS.step.replace("output:", "options: {step: 2}, output:")), "from_here"),
    Edit("pandas_state: nothing", TALLIES, TALLIES, "same"),
    Edit("pandas_state: another key", TALLIES, TALLIES.with_(step=TALLIES.step.replace("key: [k]", "key: [k2]")), "breaks"),
    Edit("pandas_state: columns of its state exchanged", TALLIES, TALLIES.with_(step=TALLIES.step.replace("state: 'total BIGINT, n BIGINT'", "state: 'n BIGINT, total BIGINT'"), files=(("shaped.py", TALLY.replace("total, rows = state.get if state.exists else (0, 0)", "rows, total = state.get if state.exists else (0, 0)").replace("((total, rows))", "((rows, total))")),)), "breaks"),
    # Code.
    Edit("function: nothing", FUNCTION, FUNCTION, "same"),
    Edit("function: its code", FUNCTION, FUNCTION.with_(files=(("words.py", SHOUT.replace("upper()", "title() + '!'")),)), "breaks"),
    Edit("function: another one under its name", FUNCTION, FUNCTION.with_(extra=FUNCTION.extra.replace("words:shout", "words:whisper"), files=(("words.py", SHOUT + "\n\ndef whisper(text):\n    return text + '?'\n"),)), "breaks"),
    Edit("function: moved to another module", FUNCTION, FUNCTION.with_(extra=FUNCTION.extra.replace("words:shout", "more:shout"), files=(("more.py", SHOUT), ("words.py", SHOUT))), "same"),
    Edit("function: the code of another one", FUNCTION, FUNCTION.with_(files=(("words.py", SHOUT.replace("return text\n", "return text * 2\n")),)), "same"),
    Edit("function: type hints, comments", FUNCTION, FUNCTION.with_(files=(("words.py", SHOUT.replace("def shout(text):", "def shout(text: str) -> str:\n    \"\"\"Loud.\"\"\"\n    # why")),)), "same"),
    Edit("python: nothing", PYTHON, PYTHON, "same"),
    Edit("python: what mapInPandas computes", PYTHON, PYTHON.with_(files=(("shaped.py", MAPPED.replace("FACTOR = 1", "FACTOR = 100")),)), "breaks"),
    Edit("python: a lambda in a key", PYTHON.with_(step="{python: 'shaped:with_udf'}"), PYTHON.with_(step="{python: 'shaped:with_udf'}", files=(("shaped.py", MAPPED.replace('"!"', '"?"')),)), "breaks"),
    Edit("python: keys of groupBy reordered", PYTHON.with_(step="{python: 'shaped:plain'}"), PYTHON.with_(step="{python: 'shaped:plain'}", files=(("shaped.py", MAPPED.replace('"k", "k2"', '"k2", "k"')),)), "breaks"),
    Edit("python: in SQL now", PYTHON.with_(step="{python: 'shaped:plain'}"), COUNT, "same"),
    # Expressions: the same in other words.
    Edit("sums: IN, other order", SUMS.with_(sql="SELECT k, sum(CASE WHEN k2 IN ('p', 'q') THEN v END) AS s FROM a GROUP BY k"), SUMS.with_(sql="SELECT k, sum(CASE WHEN k2 IN ('q', 'p') THEN v END) AS s FROM a GROUP BY k"), "same"),
    Edit("sums: a long IN, one value", SUMS.with_(sql=f"SELECT k, sum(CASE WHEN v IN ({', '.join(map(str, range(1, 13)))}) THEN v END) AS s FROM a GROUP BY k"), SUMS.with_(sql=f"SELECT k, sum(CASE WHEN v IN ({', '.join(map(str, range(3, 15)))}) THEN v END) AS s FROM a GROUP BY k"), "breaks"),
    Edit("sums: IF as CASE", SUMS.with_(sql="SELECT k, sum(if(v > 2, v, u)) AS s FROM a GROUP BY k"), SUMS.with_(sql="SELECT k, sum(CASE WHEN v > 2 THEN v ELSE u END) AS s FROM a GROUP BY k"), "same"),
    Edit("sums: name of a lambda's variable", SUMS.with_(columns=NESTED, sql="SELECT k, sum(size(filter(tags, x -> x = 'p'))) AS s FROM a GROUP BY k"), SUMS.with_(columns=NESTED, sql="SELECT k, sum(size(filter(tags, one -> one = 'p'))) AS s FROM a GROUP BY k"), "same"),
    Edit("sums: HOUR for hour", SUMS.with_(sql="SELECT date_trunc('hour', at) AS h, sum(v) AS s FROM a GROUP BY date_trunc('hour', at)"), SUMS.with_(sql="SELECT date_trunc('HOUR', at) AS h, sum(v) AS s FROM a GROUP BY date_trunc('HOUR', at)"), "same"),
    Edit("sums: bytes in a key", SUMS.with_(sql="SELECT encode(k, 'utf-8') = X'78' AS b, sum(v) AS s FROM a GROUP BY encode(k, 'utf-8') = X'78'"), SUMS.with_(sql="SELECT encode(k, 'utf-8') = X'78' AS b, sum(v) AS s FROM a GROUP BY encode(k, 'utf-8') = X'78'"), "same"),
    Edit("join: 300 seconds for 5 minutes", JOIN, _sql(JOIN, "INTERVAL 5 minutes", "INTERVAL 300 seconds"), "same"),
    Edit("join: one side through a WITH", JOIN, JOIN.with_(sql="WITH z AS (SELECT * FROM b) " + JOIN.sql.replace("JOIN b y", "JOIN z y")), "breaks"),
    Edit("join: null-safe equality", JOIN, _sql(JOIN, "x.k = y.k", "x.k <=> y.k"), "breaks"),
    Edit("join: uuid() in a stored column", JOIN.with_(steps="  c: {sql: 'SELECT *, uuid() AS run FROM a'}", sql=JOIN.sql.replace("SELECT x.id", "SELECT x.run, x.id").replace("FROM a x", "FROM c x")), JOIN.with_(steps="  c: {sql: 'SELECT *, uuid() AS run FROM a'}", sql=JOIN.sql.replace("SELECT x.id", "SELECT x.run, x.id").replace("FROM a x", "FROM c x")), "from_here"),
    Edit("join: the time of arrival in a stored column", JOIN.with_(steps="  c: {sql: \"SELECT *, date_format(current_timestamp() - INTERVAL 1 day, 'yyyy') AS run FROM a\"}", sql=JOIN.sql.replace("SELECT x.id", "SELECT x.run, x.id").replace("FROM a x", "FROM c x")), JOIN.with_(steps="  c: {sql: \"SELECT *, date_format(current_timestamp() - INTERVAL 1 day, 'yyyy') AS run FROM a\"}", sql=JOIN.sql.replace("SELECT x.id", "SELECT x.run, x.id").replace("FROM a x", "FROM c x")), "from_here"),
    Edit("count: a filter by the clock", COUNT.with_(sql=COUNT.sql.replace("GROUP", "WHERE at < current_timestamp() + INTERVAL 9999 days AND at < current_date() + 9999 GROUP")), COUNT.with_(sql=COUNT.sql.replace("GROUP", "WHERE at < current_timestamp() + INTERVAL 9999 days AND at < current_date() + 9999 GROUP")), "same"),
    Edit("self-join: nothing", SELF_JOIN, SELF_JOIN, "same"),
    Edit("self-join: another key", SELF_JOIN, _sql(SELF_JOIN, "x.k = y.k", "x.k2 = y.k2"), "breaks"),
    Edit("windows of windows: nothing", CHAIN, CHAIN, "same"),
    Edit("windows of windows: the inner length", CHAIN, _sql(CHAIN, "window(at, '5 minutes')", "window(at, '2 minutes')"), "breaks"),
    Edit("windows: length by a variable", WINDOWS.with_(sql=WINDOWS.sql.replace("10 minutes", "${LENGTH}"), project="variables: {LENGTH: 10 minutes}\n"), WINDOWS.with_(sql=WINDOWS.sql.replace("10 minutes", "${LENGTH}"), project="variables: {LENGTH: 5 minutes}\n"), "breaks"),
    Edit("sessions: gaps by key, nothing", GAPS, GAPS, "same"),
    Edit("sessions: one of the gaps", GAPS, _sql(GAPS, "2 minutes", "1 minute"), "breaks"),
    Edit("deduplication within the watermark: keys reordered", WITHIN, WITHIN.with_(step=WITHIN.step.replace("k, k2", "k2, k")), "breaks"),
    Edit("deduplication within the watermark: delay", WITHIN, WITHIN.with_(watermark="{column: at, delay: 20 minutes}"), "from_here"),
    # Types.
    Edit("sums: a smaller integer", SUMS, SUMS.with_(columns=COLUMNS.replace("v BIGINT", "v INT")), "same"),
    Edit("count: a key of another integer type", KEYS.with_(sql="SELECT u, count(*) AS n FROM a GROUP BY u"), KEYS.with_(sql="SELECT u, count(*) AS n FROM a GROUP BY u", columns=COLUMNS.replace("u BIGINT", "u INT")), "breaks"),
    Edit("count: a field added to a struct", KEYS.with_(columns=NESTED, sql="SELECT pair.x AS x, count(*) AS n FROM a GROUP BY pair.x"), KEYS.with_(columns=NESTED.replace("y: BIGINT>", "y: BIGINT, z: BIGINT>"), sql="SELECT pair.x AS x, count(*) AS n FROM a GROUP BY pair.x"), "same"),
    # Two edits at once.
    Edit("source renamed, and max for sum", SUMS, SUMS.with_(sql=SUMS.sql.replace("sum(v)", "max(v)").replace("FROM a", "FROM orders"), names=("orders", "b")), "breaks"),
    Edit("source renamed, and a filter", SUMS, SUMS.with_(sql=SUMS.sql.replace("FROM a", "FROM orders WHERE v > 1"), names=("orders", "b")), "from_here"),
    # Sinks.
    Edit("sink: another format of files", STATELESS, STATELESS.with_(sink="type: files, path: out, format: csv"), "breaks"),
    Edit("sink: partitions of files", STATELESS, STATELESS.with_(sink=STATELESS.sink + ", partition_by: [k]"), "breaks"),
    Edit("limit: more rows", STATELESS.with_(sql="SELECT id, k, v FROM a LIMIT 5"), STATELESS.with_(sql="SELECT id, k, v FROM a LIMIT 20"), "breaks"),
)  # fmt: skip
