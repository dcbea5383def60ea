"""Every feature of Structured Streaming's guide, section by section, each to be proved by a test or an example.

A proof carries `pytest.mark.covers("<id>", …)`; `tests/proofs.py` finds them, and writes `docs/coverage.md`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Feature:
    id: str
    what: str
    rule: str = ""
    """Of what is refused or warned of: the code of the rule, whose wrong and right case are tests."""


@dataclass(frozen=True)
class Section:
    title: str
    features: tuple[Feature, ...]


def section(title: str, *features: tuple[str, str] | Feature) -> Section:
    return Section(title, tuple(one if isinstance(one, Feature) else Feature(*one) for one in features))


def judged(name: str, what: str, rule: str) -> Feature:
    return Feature(name, what, rule=rule)


SECTIONS = (
    section(
        "Quick example",
        ("quick.word-count", "Words from a socket, counted as they come"),
        ("quick.same-as-batch", "The same step gives on a stream what it gives on a table"),
    ),
    section(
        "Programming model",
        ("model.append", "Append: each row of the result goes out once, when it is final"),
        ("model.update", "Update: rows of the result go out whenever they change"),
        ("model.complete", "Complete: the whole result goes out after each batch"),
        ("model.incremental", "A batch reads what is new and keeps only state, not the rows of before"),
        ("model.event-time", "The time inside a row counts, not the time when it is read"),
        ("model.exactly-once", "Replayable source, log of offsets, idempotent sink: exactly once over crashes"),
    ),
    section(
        "Input sources",
        ("source.files", "Files of a folder, in the order of their time"),
        ("source.files.formats", "Text, CSV, JSON, ORC and Parquet, and XML besides"),
        ("source.files.max-files", "At most so many files in a batch"),
        ("source.files.max-bytes", "At most so many bytes in a batch"),
        ("source.files.latest-first", "The newest files first"),
        ("source.files.file-name-only", "A file is known by its name alone, whatever its folder"),
        ("source.files.max-file-age", "Files of a great age are passed over"),
        ("source.files.clean-delete", "Files that were read are deleted"),
        ("source.files.clean-archive", "Files that were read are archived under their own path"),
        ("source.files.clean-overlap", "An archive that the source would read again, or two readers, are refused"),
        ("source.files.cleaner-threads", "So many threads clean up"),
        ("source.files.glob", "A glob stands for many folders"),
        ("source.socket", "Lines from a socket, for learning: not replayable"),
        ("source.rate", "So many rows a second, over so many partitions"),
        ("source.rate.ramp-up", "A pace that is reached by and by"),
        ("source.rate-micro-batch", "So many rows a batch, with a time that advances by the batch"),
        ("source.kafka", "Topics by name, by pattern or by partition"),
        ("source.kafka.positions", "Where a read of Kafka begins and ends: offsets, moments, earliest, latest"),
        ("source.kafka.limits", "How many records of Kafka a batch takes, at most and at least"),
        ("source.kafka.data-loss", "Records that are gone before they were read"),
        ("source.kafka.columns", "Key, value, topic, partition, offset, time and headers as columns"),
        ("source.delta", "A Delta table as a stream, from a version or a moment on"),
        ("source.iceberg", "An Iceberg table as a stream"),
        ("source.spark", "Any other format that Spark can stream"),
        ("source.replayable", "Which sources can be read again after a failure"),
    ),
    section(
        "Schema inference and partitions",
        ("schema.given", "A stream of files has a schema that is given"),
        ("schema.inferred", "A schema that is inferred, on demand"),
        ("schema.living", "A schema that takes up the columns that files bring"),
        ("schema.folders", "Folders `key=value` give columns"),
        ("schema.folders.fixed", "Other partition folders than at birth are refused"),
    ),
    section(
        "Basic operations",
        ("operation.select", "Projection and selection"),
        ("operation.aggregate", "A running count per key"),
        ("operation.sql", "SQL over streams as views"),
        ("operation.function", "Functions of the user's own: Python, pandas, Arrow"),
        ("operation.is-streaming", "Penstock knows which inputs are streams and which are tables"),
        ("operation.plan", "The plan, with the stateful operators that Spark put into it"),
    ),
    section(
        "Windows on event time",
        ("window.tumbling", "Windows side by side"),
        ("window.sliding", "Windows that overlap: a row counts in several"),
        ("window.session", "Sessions that end when nothing came for a while"),
        ("window.session.dynamic", "Sessions whose gap is told by the row; none, and the row is left out"),
        judged("window.session.update", "Sessions are refused in update mode", "MODE002"),
        judged("window.session.global", "Sessions without another key are refused in a stream", "OPERATION010"),
        ("window.session.partial", "Sessions may be merged before the shuffle"),
        ("window.time", "`window_time` gives the time of a window, for another window over it"),
        ("window.of-window", "`window` takes the window of another aggregation"),
        judged("window.slide-longer", "A slide longer than the window is refused", "WINDOW001"),
    ),
    section(
        "Late data and watermarks",
        ("late.counted", "A row out of order counts in the window of its own time"),
        ("late.update", "Update mode: a window changes until the watermark has passed it"),
        ("late.append", "Append mode: a window goes out once, when the watermark has passed it"),
        ("late.dropped", "A row behind the watermark is dropped, and counted"),
        ("late.guarantee", "What is within the delay is never dropped; what is beyond may be"),
        judged("late.static", "A watermark on a table does nothing", "WATERMARK001"),
        ("late.state-removed", "State of closed windows is removed in append and update, and kept in complete"),
        judged("late.same-column", "The watermark must be on the column of the window", "WATERMARK003"),
        judged("late.before-aggregation", "The watermark must come before the aggregation", "WATERMARK002"),
    ),
    section(
        "Stream-static joins",
        ("join.static.inner", "Inner join with a table"),
        ("join.static.outer", "Left outer join with a table, the stream on the left"),
        ("join.static.semi", "Left semi join with a table"),
        ("join.static.left", "A table on the left: inner and right outer joins"),
        ("join.static.stateless", "A join with a table keeps no state"),
        judged("join.static.refused", "The outer and semi joins of table and stream that Spark refuses", "JOIN001"),
    ),
    section(
        "Stream-stream joins",
        ("join.inner", "Inner join of streams"),
        ("join.inner.unbounded", "Inner join without watermark: it works, and its state grows for ever"),
        ("join.time-range", "A bound in time between the two sides"),
        ("join.window", "The same window on both sides"),
        ("join.left", "Left outer join: rows that found no match come out when none can come any more"),
        ("join.right", "Right outer join"),
        ("join.full", "Full outer join"),
        ("join.semi", "Left semi join"),
        ("join.outer.delay", "Outer rows wait for the watermark, and for an input that is idle"),
        judged("join.outer.refused", "Outer and semi joins without watermark or time bound are refused", "JOIN002"),
        ("join.chain", "Joins one after another"),
        judged("join.append-only", "Joins of streams in append mode alone", "JOIN004"),
        ("join.after-aggregation", "Windows of both sides are aggregated, then joined"),
        ("join.before-aggregation", "A join with a time bound, then aggregated"),
    ),
    section(
        "Deduplication",
        ("dedup.unbounded", "By key, without a watermark: every key is kept for ever"),
        ("dedup.watermark", "By key and event time: forgotten when the watermark has passed it"),
        ("dedup.within", "By key within the watermark's delay, whatever the event time"),
        ("dedup.within.needs-watermark", "Within a watermark needs a watermark"),
    ),
    section(
        "Several watermarks",
        ("watermarks.min", "The slowest input sets the watermark of all"),
        ("watermarks.max", "On demand the fastest does, and the slower one loses rows"),
    ),
    section(
        "Arbitrary state",
        ("state.values", "State of the user's own per key: values, lists and maps"),
        ("state.timers", "Timers, by event time and by processing time"),
        ("state.ttl", "State that expires by itself"),
        ("state.initial", "State that begins with the rows of a table"),
        ("state.evolution", "The schema of state may change where Spark allows it"),
        ("state.pandas", "applyInPandasWithState, in append and update mode, with its timeouts"),
        ("state.restart", "State goes on over a restart"),
        ("state.ready-made", "Processors that nobody needs to write: sessions, velocity, top n, last seen"),
    ),
    section(
        "Unsupported operations",
        judged("refused.limit", "Limit, where Spark refuses it", "MODE005"),
        judged("refused.distinct", "Distinct aggregations", "OPERATION002"),
        judged("refused.sort", "Sorting, unless after an aggregation in complete mode", "OPERATION001"),
        judged("refused.chained", "Several stateful operators in update or complete mode", "MODE004"),
        judged("refused.state-then-state", "A processor before other state, where Spark refuses it", "MODE004"),
        ("refused.actions", "`count()`, `show()` and `collect()` on a stream"),
        ("refused.two-queries", "The way around: two queries through a table"),
    ),
    section(
        "State stores",
        ("store.hdfs", "The store in memory, backed by files"),
        ("store.rocksdb", "RocksDB"),
        ("store.rocksdb.options", "All options of RocksDB, by typed keys"),
        ("store.rocksdb.memory", "A bound on the memory of all RocksDB stores"),
        ("store.rocksdb.changelog", "Changelog checkpoints, switched on and off between runs"),
        ("store.rocksdb.row-count", "Counting rows of state can be left out"),
        ("store.custom", "A provider of the user's own"),
    ),
    section(
        "Output modes and sinks",
        ("mode.matrix", "Which kind of query may have which mode"),
        ("sink.modes", "Which sink takes which mode"),
        ("sink.files", "Files in each format, in folders by column"),
        ("sink.files.retention", "Output files that leave the log after a time"),
        ("sink.kafka", "Records to one topic, or to the one that a row names"),
        ("sink.console", "Rows on the screen: how many, and how wide"),
        ("sink.memory", "Rows in memory, to be asked by SQL"),
        ("sink.delta", "A Delta table, appended to, overwritten or merged into"),
        ("sink.iceberg", "An Iceberg table"),
        ("sink.jdbc", "A database through JDBC"),
        ("sink.guarantees", "What each sink promises when a batch is run again"),
        ("sink.spark", "Any other format that Spark can write a stream to"),
    ),
    section(
        "foreachBatch and foreach",
        ("foreach-batch", "A function gets each batch with its number"),
        ("foreach-batch.once", "The batch's number makes writes idempotent"),
        ("foreach-batch.several", "One batch into several places, computed once"),
        ("foreach-batch.batch-writer", "Writers of batches serve streams: JDBC, MERGE"),
        ("foreach.function", "A function gets each row"),
        ("foreach.object", "An object gets each row between open and close"),
    ),
    section(
        "Tables",
        ("table.read", "A table of the catalog as a stream"),
        ("table.write", "A stream into a table of the catalog"),
    ),
    section(
        "Triggers",
        ("trigger.default", "Batch after batch, as soon as possible"),
        ("trigger.interval", "A batch each interval"),
        ("trigger.once", "All in one batch, then the end (deprecated)"),
        ("trigger.available-now", "All that is there, in batches of the limited size, then the end"),
        ("trigger.available-now.watermark", "The watermark moves with each batch; an empty last one closes windows"),
        ("trigger.continuous", "Continuous processing"),
        ("trigger.real-time", "Real-Time Mode"),
    ),
    section(
        "Managing and monitoring queries",
        ("query.identity", "An id that outlives restarts, a run id that does not, and a name"),
        ("query.explain", "The plan of a running query"),
        ("query.stop", "A query is stopped, and waited for"),
        ("query.exception", "The error that ended a query"),
        ("query.progress", "Progress of the last batches, and what the query is doing"),
        ("query.several", "Several queries at a time, waited for together"),
        ("query.listener", "Listeners hear of start, progress and end"),
        ("query.dropwizard", "Metrics of queries through Spark's own metrics system"),
    ),
    section(
        "Recovery",
        ("recovery.resume", "A run goes on where the last one ended"),
        ("recovery.crash", "A run goes on after a crash in the middle of a batch"),
        ("recovery.remote", "A checkpoint on a Hadoop file system"),
        ("recovery.sources-changed", "Another number or kind of sources"),
        ("recovery.limits-changed", "Other rate limits"),
        ("recovery.topics-changed", "Other topics or folders"),
        ("recovery.sink-changed", "Another kind of sink"),
        ("recovery.sink-options-changed", "Another folder or topic of the same sink"),
        ("recovery.filter-changed", "Another filter or projection"),
        ("recovery.aggregation-changed", "Other grouping keys or aggregates"),
        ("recovery.dedup-changed", "Other columns of a deduplication"),
        ("recovery.join-changed", "Another join"),
        ("recovery.state-changed", "Another schema of the user's own state"),
        ("recovery.settings-fixed", "Shuffle partitions, state store and watermark policy stay as they were born"),
    ),
    section(
        "Asynchronous progress and continuous processing",
        ("async.progress", "Offsets are logged beside the work"),
        ("async.interval", "How often they are logged"),
        ("async.switch-off", "Going back to a log of every batch"),
        judged("continuous.operations", "Which operations are for continuous processing", "CONTINUOUS001"),
        judged("continuous.clock", "It has no current time", "CONTINUOUS002"),
        judged("continuous.sources", "Which sources are for continuous processing", "CONTINUOUS003"),
        judged("continuous.sinks", "Which sinks are for continuous processing", "CONTINUOUS004"),
        ("continuous.switch", "A checkpoint serves both ways of running"),
        ("continuous.slots", "It needs a core for each partition"),
        ("continuous.retries", "No task is run again: the query is started again from its checkpoint"),
    ),
)  # fmt: skip
