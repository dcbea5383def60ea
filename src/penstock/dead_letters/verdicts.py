"""Bad records and expectations, as columns: which rows go on, which are put aside, and how many of each.

The order at a source: decode, bad records, expectations, `max_future`, watermark. A filter in a later step would come
too late.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from penstock.dead_letters.bad_records import ARRIVED, DECODED, FUTURE, HIDDEN, ORIGIN_SCHEMA
from penstock.facts.raised import sealed
from penstock.notation.durations import to_milliseconds
from penstock.notation.sql_text import quoted
from penstock.pipeline.model import Source, Step
from penstock.sources.source import Decoded
from penstock.transforms.functions import Function
from penstock.transforms.splice import ERROR

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

VERDICT = "_penstock_verdict"
"""Why a row does not go on: `STRUCT<otherwise, check, reason>`, or NULL."""
PLACE = ("topic", "partition", "offset", "file")
"""What of a record's origin tells where it is."""
OBSERVED = "penstock."
"""Starts the name of the observation of a node's checks; the node's name follows."""
SHOWN_CHARACTERS = 200
_LONGEST_MICROSECONDS = 2**61
"""Far beyond all that Spark can tell of time, and still a number that can be added to."""


def judged(rows: DataFrame, node: Source | Step, functions: Mapping[str, Function]) -> DataFrame:
    """The rows with their verdict; unchanged where nothing judges them, or a bad record stops the query anyway."""
    from pyspark.sql.functions import coalesce, lit

    if _only_stops(rows, node):
        return rows
    verdicts = [*_decoded(rows, node), *_called(rows, functions), *_expected(node), *_in_time(rows, node)]
    if not verdicts and node.spec.expect:  # all of them only count
        verdicts = [lit(None).cast("STRUCT<otherwise: STRING, check: STRING, reason: STRING>")]
    return rows.withColumn(VERDICT, coalesce(*verdicts)) if verdicts else rows


def with_arrival(rows: DataFrame, source: Source) -> DataFrame:
    """The rows of a source with the time at which each came, where the source can tell."""
    from pyspark.sql.functions import expr

    return rows.withColumn(ARRIVED, expr(source.spec.arrival)) if source.spec.arrival and rows.isStreaming else rows


def kept(
    rows: DataFrame, node: Source | Step, functions: Mapping[str, Function], carry: Collection[str] = ()
) -> DataFrame:
    """The rows that go on, without what is hidden; what was judged is counted. `carry` names what stays of it."""
    from pyspark.sql.functions import col, lit, raise_error, spark_partition_id, when

    hidden = [VERDICT, ERROR, *({HIDDEN, ARRIVED} - set(carry))]
    if _only_stops(rows, node):
        reason = col(HIDDEN)["reason"]
        told = _place(node) if _finds_again(node) else _failure(rows, node, lit(DECODED), reason, col(HIDDEN)["raw"])
        stops = raise_error(told).cast("boolean")
        # Not deterministic, so that no filter of a later step is asked before it and drops what should stop the query.
        return rows.where(when(reason.isNull(), spark_partition_id() >= lit(0)).otherwise(stops)).drop(*hidden)
    if VERDICT not in rows.columns:
        return rows.drop(*hidden)
    counted = rows.observe(f"{OBSERVED}{node.name}", *_counts(rows, node, functions))
    verdict = col(VERDICT)
    goes_on = verdict.isNull()
    if _can_fail(node, rows):
        stops = raise_error(_failure(rows, node, verdict["check"], verdict["reason"], _raw(rows))).cast("boolean")
        goes_on = when(verdict["otherwise"] == lit("fail"), stops).otherwise(goes_on)
    return counted.where(goes_on).drop(*hidden)


def dead_letters(rows: DataFrame, node: str) -> DataFrame:
    """What a node puts aside: the record, why, and where it came from."""
    from pyspark.sql.functions import col, current_timestamp, lit

    aside = rows.where(col(VERDICT)["otherwise"] == lit("dead_letter"))
    origin = _origin(rows)
    shown = aside.select(
        lit(node).alias("node"),
        col(VERDICT)["check"].alias("check"),
        col(VERDICT)["reason"].alias("reason"),
        _raw(rows).alias("raw"),
        *(origin[name].alias(name) for name in origin_fields()),
        current_timestamp().alias("at"),
    )
    return identified(shown)


def of_sink(rows: DataFrame, sink: str) -> DataFrame:
    """Rows `raw, reason` that a sink refused, in the shape of all dead letters."""
    from pyspark.sql.functions import col, current_timestamp, lit

    origin = lit(None).cast(f"STRUCT<{ORIGIN_SCHEMA}>")
    shown = rows.select(
        lit(sink).alias("node"),
        lit("sent").alias("check"),
        col("reason"),
        col("raw"),
        *(origin[name].alias(name) for name in origin_fields()),
        current_timestamp().alias("at"),
    )
    return identified(shown)


def identified(letters: DataFrame) -> DataFrame:
    """With `id`, made of the record's origin and content: the same however often it is read."""
    from pyspark.sql.functions import coalesce, col, concat_ws, hex, lit, sha2  # noqa: A004 - Spark's name for it

    place = [coalesce(col(name).cast("string"), lit("")) for name in PLACE]
    content = coalesce(hex(col("raw")), lit("NULL"))
    return letters.select(sha2(concat_ws("|", col("node"), *place, content), 256).alias("id"), "*")


def origin_fields() -> list[str]:
    return ["topic", "partition", "offset", "timestamp", "key", "headers", "file"]


def _decoded(rows: DataFrame, node: Source | Step) -> list[Column]:
    from pyspark.sql.functions import col, lit

    if HIDDEN not in rows.columns or not isinstance(node.spec, Decoded):
        return []
    reason = col(HIDDEN)["reason"]
    return [_when(reason.isNotNull(), lit(node.spec.on_bad_record), DECODED, reason)]


def _called(rows: DataFrame, functions: Mapping[str, Function]) -> list[Column]:
    from pyspark.sql.functions import col, create_map, lit

    if ERROR not in rows.columns:
        return []
    policies = create_map(*(lit(word) for name, one in functions.items() for word in (name, one.policy)))
    error = col(ERROR)
    return [_when(error.isNotNull(), policies[error["name"]], error["name"], error["reason"])]


def _expected(node: Source | Step) -> list[Column]:
    from pyspark.sql.functions import coalesce, expr, lit

    return [
        _when(
            ~coalesce(expr(expectation.that), lit(False)),
            lit(expectation.otherwise),
            name,
            lit(f"not so: {expectation.that}"),
        )
        for name, expectation in node.spec.expect.items()
        if expectation.otherwise != "warn"
    ]


def _in_time(rows: DataFrame, node: Source | Step) -> list[Column]:
    from pyspark.sql.functions import concat, lit

    if (watermark := node.spec.watermark) is None or watermark.max_future is None:
        return []
    said = concat(
        lit(f"`{watermark.column}` is "),
        _event_time(node).cast("string"),
        lit(f", more than {watermark.max_future} after it came at "),
        _clock(rows).cast("string"),
    )
    return [_when(_is_future(rows, node), lit(watermark.on_future), FUTURE, said)]


def _is_future(rows: DataFrame, node: Source | Step) -> Column:
    """Is a row too far ahead? One without an event time is not."""
    from pyspark.sql.functions import coalesce, lit, unix_micros

    watermark = node.spec.watermark
    limit = to_milliseconds(watermark.max_future or "") * 1_000 if watermark else 0
    latest = unix_micros(_clock(rows)) + lit(min(limit, _LONGEST_MICROSECONDS))
    return coalesce(unix_micros(_event_time(node)) > latest, lit(False))


def _event_time(node: Source | Step) -> Column:
    from pyspark.sql.functions import col

    return col(node.spec.watermark.column if node.spec.watermark else "").cast("timestamp")


def _clock(rows: DataFrame) -> Column:
    """When a row came; at most the time of the batch, which Spark keeps with the batch's offsets.

    The query of the data and that of the dead letters read a record in different batches, and a replay reads it again:
    all must judge alike, or a row would be lost or come twice. So the record's own time counts, where it has one.
    """
    from pyspark.sql.functions import col, current_timestamp, least

    now = current_timestamp()
    return least(col(ARRIVED), now) if ARRIVED in rows.columns else now


def _when(condition: Column, otherwise: Column, check: str | Column, reason: Column) -> Column:
    from pyspark.sql.functions import lit, struct, when

    named = lit(check) if isinstance(check, str) else check
    verdict = struct(otherwise.alias("otherwise"), named.alias("check"), reason.alias("reason"))
    return when(condition, verdict)


def _counts(rows: DataFrame, node: Source | Step, functions: Mapping[str, Function]) -> list[Column]:
    """Rows judged, rows that do not go on, dead letters, and for each check the rows that fail it."""
    from pyspark.sql.functions import coalesce, col, count, count_if, expr, lit

    verdict = col(VERDICT)
    first = coalesce(verdict["check"], lit(""))
    undecoded = first == lit(DECODED)
    counts = [
        count(lit(1)).alias("rows"),
        count_if(verdict.isNotNull()).alias("refused"),
        count_if(verdict["otherwise"] == lit("dead_letter")).alias("dead_letters"),
        count_if(undecoded).alias(f"check.{DECODED}"),
    ]
    if ERROR in rows.columns:
        counts += [count_if(first == lit(name)).alias(f"check.{name}") for name in functions]
    for name, expectation in node.spec.expect.items():
        fails = ~coalesce(expr(expectation.that), lit(False))
        counts.append(count_if(fails & ~undecoded).alias(f"check.{name}"))
    if _in_time(rows, node):
        counts.append(count_if(_is_future(rows, node) & ~undecoded).alias(f"check.{FUTURE}"))
    return counts


def _can_fail(node: Source | Step, rows: DataFrame) -> bool:
    decodes = isinstance(node.spec, Decoded) and node.spec.on_bad_record == "fail" and HIDDEN in rows.columns
    watermark = node.spec.watermark
    ahead = watermark is not None and watermark.max_future is not None and watermark.on_future == "fail"
    expects = any(one.otherwise == "fail" for one in node.spec.expect.values())
    return decodes or ahead or expects or ERROR in rows.columns


def _finds_again(node: Source | Step) -> bool:
    return isinstance(node, Source) and node.spec.declared_capabilities.rereads_records


def _place(node: Source | Step) -> Column:
    """The same in few words, for a record that can be found again."""
    from pyspark.sql.functions import col, concat, lit

    origin = col(HIDDEN)["origin"]
    head = json.dumps({"node": node.name, "check": DECODED}).removesuffix("}")
    partition, offset = origin["partition"].cast("string"), origin["offset"].cast("string")
    topic = [lit(f'{sealed("bad-record")}{head}, "topic": "'), origin["topic"]]
    return concat(*topic, lit('", "partition": '), partition, lit(', "offset": '), offset, lit("}"))


def _only_stops(rows: DataFrame, node: Source | Step) -> bool:
    """Is the one question to its rows whether they could be decoded, and `fail` the answer if not?"""
    decodes = isinstance(node.spec, Decoded) and node.spec.on_bad_record == "fail" and HIDDEN in rows.columns
    watermark = node.spec.watermark
    limits = watermark is not None and watermark.max_future is not None
    return decodes and not node.spec.expect and not limits and ERROR not in rows.columns


def _failure(rows: DataFrame, node: Source | Step, check: Column, reason: Column, raw: Column) -> Column:
    """The text of the error at a bad record: what a Problem is made of."""
    from pyspark.sql.functions import concat, lit, struct, substring, to_json

    origin = _origin(rows)
    told = struct(
        lit(node.name).alias("node"),
        check.alias("check"),
        reason.alias("reason"),
        *(origin[name].alias(name) for name in PLACE),
        substring(raw.cast("string"), 1, SHOWN_CHARACTERS).alias("record"),
    )
    return concat(lit(sealed("bad-record")), to_json(told))


def _origin(rows: DataFrame) -> Column:
    from pyspark.sql.functions import col, lit

    return col(HIDDEN)["origin"] if HIDDEN in rows.columns else lit(None).cast(f"STRUCT<{ORIGIN_SCHEMA}>")


def _raw(rows: DataFrame) -> Column:
    """The record as it came; where that is not known, the row as JSON."""
    from pyspark.sql.functions import coalesce, col, struct, to_json, when

    ours = {HIDDEN, ARRIVED, VERDICT, ERROR}
    columns = [col(quoted(name)) for name in rows.columns if name not in ours]
    as_json = to_json(struct(*columns)).cast("binary")
    if HIDDEN not in rows.columns:
        return as_json
    raw, reason = col(HIDDEN)["raw"], col(HIDDEN)["reason"]
    return coalesce(raw, when(reason.isNull(), as_json))
