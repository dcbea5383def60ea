"""Records of Kafka topics."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.connections.kafka import KafkaAddress, require_address
from penstock.connections.kafka_cluster import Cluster
from penstock.connections.kafka_offsets import Lost, lost_ranges, next_offsets, to_json
from penstock.connections.kafka_options import FETCH_BYTES, FETCH_WAIT, POLL_RECORDS, chosen_by, session_setting
from penstock.dead_letters.bad_records import HIDDEN
from penstock.facts.failure import Failure
from penstock.facts.stores import Store
from penstock.formats.messages import Decoding, RegistrySubject
from penstock.formats.messages_any import AnyMessageRead
from penstock.formats.messages_avro import AvroMessageRead, schema_id
from penstock.notation.durations import Duration, to_milliseconds
from penstock.notation.paths import is_local
from penstock.problems import Fault
from penstock.sources.beginning import Beginning
from penstock.sources.kafka_lag import KafkaLag
from penstock.sources.kafka_positions import Ending, Partitions, Starting, names_partitions, position_options
from penstock.sources.kafka_reasons import PARSED, data_of, reason_of
from penstock.sources.lag_meter import LagMeter
from penstock.sources.source import Decoded, Reread, SourceCapabilities, StaticOrStream
from penstock.spec import given_options, spark_option
from penstock.storage.hadoop import HadoopStorage
from penstock.storage.storage import LocalStorage, Storage

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Metadata = Literal["key", "topic", "partition", "offset", "timestamp", "timestamp_type", "headers"]
_COLUMNS = {"timestamp_type": "timestampType"}
_PLACE = ("topic", "partition", "offset", "timestamp")
_ORIGIN = (*_PLACE, "key", "headers")
_STREAM_ONLY = (
    "max_offsets_per_trigger", "min_offsets_per_trigger", "max_trigger_delay", "max_records_per_partition",
)  # fmt: skip
_SHOWN_LOSSES = 10


class Kafka(StaticOrStream, Decoded, KafkaAddress):
    """Records of Kafka topics, in order within a partition. Replayable: yes, as long as the topic keeps them.

    - Records of transactions that were aborted are not seen, unless `isolation_level` says so.
    - Where the checkpoint stands is kept by Spark, not by the broker: a consumer group shows no lag.
    - A query that should go on at records that the topic has no more stops, and says which are gone.
    """

    type: Literal["kafka"] = "kafka"
    connection: str | None = Field(None, description="A connection of `penstock.yaml`: its keys, where not given here.")
    topics: tuple[str, ...] = Field((), description="The topics to read.")
    topic_pattern: str | None = spark_option(
        None, "Reads all topics whose whole name matches, also those made later.", name="subscribePattern"
    )
    assign: dict[str, tuple[int, ...]] = Field(
        default_factory=dict, description="Reads these partitions alone: `{topic: [partition, …]}`."
    )
    starting: Starting | None = Field(
        None,
        description="Where a new query begins: `earliest`, `latest`, `{topic: {partition: offset}}` (-2 earliest, -1"
        " latest) or `{timestamp: …}`. A running one goes on where it was. Spark's default: `latest`, and `earliest`"
        " for static reads.",
    )
    ending: Ending | None = Field(
        None, description="Static reads only, where they end: `latest`, offsets or a timestamp, as in `starting`."
    )
    format: AnyMessageRead = Field(description="`json`, `csv`, `avro`, `text` or `raw`, with its own options.")
    key_format: AnyMessageRead | None = Field(
        None, description="How keys are decoded into the column `_key`; without it they are BINARY."
    )
    metadata: tuple[Metadata, ...] = Field(
        (),
        description="Adds columns `_key`, `_topic`, `_partition`, `_offset`, `_timestamp`, `_timestamp_type` (0 set by"
        " the producer, 1 by the broker) and `_headers`.",
    )
    max_record_bytes: int | None = Field(None, gt=0, description="A record whose value is longer is a bad one.")
    keep_tombstones: bool = Field(
        False, description="A record without a value is a row of NULLs beside its metadata, in place of a bad record."
    )
    fail_on_data_loss: bool = spark_option(
        True, "Whether records that are gone before they were read stop the query; otherwise it goes on behind them."
    )
    isolation_level: Literal["read_committed", "read_uncommitted"] = Field(
        "read_committed", description="`read_uncommitted` also gives records of open and aborted transactions."
    )

    max_offsets_per_trigger: int | None = spark_option(None, "At most so many offsets in a batch.", gt=0)
    min_offsets_per_trigger: int | None = spark_option(
        None, "Waits until there are so many, or until `max_trigger_delay` is over.", gt=0
    )
    max_trigger_delay: Duration | None = Field(
        None, description="With `min_offsets_per_trigger`: the longest wait. Spark's default is 15 minutes."
    )
    min_partitions: int | None = spark_option(
        None, "Splits partitions until there are so many tasks; order within a partition is lost then.", gt=0
    )
    max_records_per_partition: int | None = spark_option(
        None, "At most so many records for one task of a batch; larger partitions are split.", gt=0
    )
    group_id_prefix: str | None = spark_option(None, "Begins the names of consumer groups; where access goes by them.")
    group_id: str | None = spark_option(
        None, "The one consumer group. No two queries may share it, or each gets a part.", name="kafka.group.id"
    )
    poll_timeout: Duration | None = Field(
        None, description="How long a task waits for records that are there. Spark's default is 2 minutes."
    )
    fetch_retries: int | None = spark_option(
        None, "How often offsets are asked for again. Spark's default is 3.", name="fetchOffset.numRetries", ge=0
    )
    fetch_retry_interval: Duration | None = Field(
        None, description="The pause before offsets are asked for again. Spark's default is 1 second."
    )

    capabilities: ClassVar[SourceCapabilities] = SourceCapabilities(stable_plan=True, rereads_records=True)
    example: ClassVar[str] = (
        "{type: kafka, servers: 'localhost:9092', topics: [orders], starting: earliest,"
        " format: {type: json, schema: 'id BIGINT, amount DOUBLE'}}"
    )

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Self:
        require_address(self, self.connection)
        if sum(map(bool, (self.topics, self.topic_pattern, self.assign))) != 1:
            raise _wrong("give one of `topics`, `topic_pattern` and `assign`")
        if self.ending is not None and not self.is_static:
            raise _wrong("`ending` is for `read: static`; a stream has no end")
        if self.is_static and self.starting == "latest":
            raise _wrong("a static read that begins at `latest` has no rows: write `earliest`, offsets or a timestamp")
        for name in _STREAM_ONLY:
            if self.is_static and getattr(self, name) is not None:
                raise _wrong(f"`{name}` is for streams")
        if self.max_trigger_delay is not None and self.min_offsets_per_trigger is None:
            raise _wrong("`max_trigger_delay` belongs to `min_offsets_per_trigger`")
        if self.group_id is not None and self.group_id_prefix is not None:
            raise _wrong("give `group_id` or `group_id_prefix`, not both")
        return self

    @property
    def arrival(self) -> str | None:
        # A producer may leave the time out, which Kafka then has as -1.
        return f"IF({HIDDEN}.origin.timestamp > TIMESTAMP'1970-01-01', {HIDDEN}.origin.timestamp, NULL)"

    @property
    def stores(self) -> tuple[Store, ...]:
        return self.topic_stores((*self.topics, *self.assign), self.connection, self.topic_pattern)

    @property
    def connectors(self) -> tuple[str, ...]:
        formats = {one.type for one in (self.format, self.key_format) if one is not None}
        return ("avro", "kafka") if "avro" in formats else ("kafka",)

    @property
    def declared_capabilities(self) -> SourceCapabilities:
        in_registry = any(getattr(one, "registry", None) for one in (self.format, self.key_format))
        by_partition = not self.assign and any(names_partitions(one) for one in (self.starting, self.ending))
        return replace(self.capabilities, asks_service_for_columns=in_registry or by_partition)

    def probe(self) -> None:
        cluster = self._cluster()
        if self.is_for_java_alone:
            cluster.reach()
            return
        self._require_topics(cluster.partitions())

    def partitions_now(self) -> int | None:
        if self.is_for_java_alone:
            return self.min_partitions
        return max(sum(map(len, self._partitions().values())), self.min_partitions or 0)

    def lag_meter(self) -> LagMeter | None:
        if self.is_for_java_alone:
            return None
        return KafkaLag(self._cluster(), self._is_ours, of_transactions=self.isolation_level == "read_uncommitted")

    def load(self, spark: SparkSession) -> DataFrame:
        return self.decoded(self._records(spark, "headers" in self.metadata), whole=False)

    def load_whole(self, spark: SparkSession) -> DataFrame:
        return self.decoded(self._records(spark, headers=True))

    def load_timed(
        self, spark: SparkSession, timed: Callable[[DataFrame], DataFrame], *, whole: bool = False
    ) -> DataFrame:
        records = self._records(spark, whole or "headers" in self.metadata)
        return self.decoded(records if self.is_static else timed(records), whole)

    @property
    def session_choices(self) -> frozenset[str]:
        if self.is_static:
            return frozenset()
        own = (FETCH_BYTES, FETCH_WAIT, POLL_RECORDS)
        return frozenset(session_setting(one) for one in own if one not in self.kafka_options)

    def reread(self, spark: SparkSession, place: Mapping[str, Any]) -> Reread | None:
        from pyspark.sql.functions import col

        topic, partition, offset = place["topic"], place["partition"], place["offset"]
        options = self.address_options() | {
            "assign": json.dumps({topic: [partition]}),
            "startingOffsets": json.dumps({topic: {partition: offset}}),
            "endingOffsets": json.dumps({topic: {partition: offset + 1}}),
            "includeHeaders": "true",
        }
        record = self.decoded(spark.read.format("kafka").options(**options).load())
        hidden = col(HIDDEN)
        found = record.select(hidden["reason"], hidden["raw"], hidden["origin"]["key"]).first()
        return Reread(found[0], found[1], self._new_schema(*found)) if found else None

    def _new_schema(self, reason: str | None, value: bytes | None, key: bytes | None) -> int | None:
        """The schema id of a bad record that the registry does not have, or has only since the query started."""
        ids = [
            (number, one, part) for one, data, part in self._avro(value, key) if (number := schema_id(data)) is not None
        ]
        unknown = [number for number, one, part in ids if not one.knows(number, self._subject(part))]
        # One that can be decoded now could not be before: the newest of its schemas was not there.
        return unknown[0] if unknown else max((number for number, _, _ in ids), default=None) if not reason else None

    def _avro(
        self, value: bytes | None, key: bytes | None
    ) -> Iterator[tuple[AvroMessageRead, bytes | None, Literal["key", "value"]]]:
        """The parts of a record that are in the wire format of a registry."""
        if isinstance(self.format, AvroMessageRead) and self.format.registry is not None:
            yield self.format, value, "value"
        if isinstance(self.key_format, AvroMessageRead) and self.key_format.registry is not None:
            yield self.key_format, key, "key"

    def decoded(self, records: DataFrame, whole: bool = True) -> DataFrame:
        """The rows of records as Spark's Kafka source gives them.

        Each batch is planned anew, and what is hidden in its plan costs more than its rows. So where nobody asks for
        it, why a record is bad is left out (the reason is empty then), and what stood beside it.
        """
        from pyspark.sql.functions import col, lit, spark_partition_id, struct, when

        value = self.format.decoding(data_of(self), self._subject("value"))
        decodings = {"value": value}
        if self.key_format is not None:
            decodings["key"] = self.key_format.decoding(col("key"), self._subject("key"))
        # Spark evaluates what is not deterministic once: it would copy the expression into each filter otherwise.
        once = spark_partition_id() >= lit(0)
        parsed = {
            PARSED[name]: one.parsed if one.is_cheap else when(once, one.parsed) for name, one in decodings.items()
        }
        origin = struct(*(col(name) for name in (_ORIGIN if whole else _PLACE)), lit(None).cast("string").alias("file"))
        reason = reason_of(self, decodings, whole)
        hidden = struct(col("value").alias("raw"), reason.alias("reason"), origin.alias("origin"))
        columns = value.columns(col(PARSED["value"]))
        rows = records.withColumns(parsed).select(*columns, *self._metadata(decodings.get("key")), hidden.alias(HIDDEN))
        return _distinct(rows)

    def recover(self, failure: Failure, spark: SparkSession, checkpoint: str) -> bool:
        number = failure.schema_id
        if number is not None:
            return any(one.knows(number, self._subject(part)) for one, _, part in self._avro(None, None))
        if failure.kind != "data_loss":
            return False
        lost = self.lost(checkpoint, LocalStorage() if is_local(checkpoint) else HadoopStorage(spark))
        if not lost:
            return False
        said = "; ".join(map(str, lost[:_SHOWN_LOSSES]))
        more = f"; and {len(lost) - _SHOWN_LOSSES} more partitions" if len(lost) > _SHOWN_LOSSES else ""
        raise Fault(
            "KAFKA004", f"records are gone that were not read yet: {said}{more}",
            "set `fail_on_data_loss: false` to go on behind them, and a longer `retention.ms` on the topic to keep the"
            " next ones until they are read", ("topics",) if self.topics else (),
        )  # fmt: skip

    def gaps(self, checkpoint: str, storage: Storage | None = None) -> list[str]:
        """What is gone of what a checkpoint would read next, a line for each partition."""
        return [str(lost) for lost in self.lost(checkpoint, storage or LocalStorage())]

    def lost(self, checkpoint: str, storage: Storage) -> list[Lost]:
        """The records that a checkpoint would read next and that the topics have no more. Raises Fault, OSError."""
        wanted = next_offsets(storage, checkpoint, self._is_ours)
        if not wanted or self.is_for_java_alone:
            return []
        cluster = self._cluster()
        there = cluster.partitions()
        places = [(topic, one) for topic, each in wanted.items() for one in each if one in there.get(topic, ())]
        return lost_ranges(wanted, *cluster.offsets(places))

    def beginning(self, moment_ms: int | None) -> Beginning | None:
        places = [(topic, one) for topic, each in self._partitions().items() for one in each]
        return Beginning(to_json(self._cluster().offsets_at(places, moment_ms)))

    def _cluster(self) -> Cluster:
        return Cluster(self, ("connection",) if self.connection else ("servers",))

    def _is_ours(self, topic: str) -> bool:
        if self.topic_pattern is not None:
            return _matches(self.topic_pattern, topic)
        return topic in self.topics or topic in self.assign

    def _require_topics(self, there: Partitions) -> None:
        hidden = "is not there, or this user may not read it"
        for index, topic in enumerate(self.topics):
            if topic not in there:
                raise Fault("KAFKA003", f"the topic `{topic}` {hidden}", "make it, or mend its name",
                            ("topics", index))  # fmt: skip
        for topic, partitions in self.assign.items():
            for partition in partitions:
                if partition not in there.get(topic, ()):
                    what = f"partition {partition} of `{topic}`" if topic in there else f"the topic `{topic}`"
                    raise Fault("KAFKA003", f"{what} {hidden}", "name partitions that are there",
                                ("assign", topic))  # fmt: skip

    def _partitions(self) -> Partitions:
        """All that this source reads now."""
        if self.assign:
            return {topic: frozenset(each) for topic, each in self.assign.items()}
        if self.is_for_java_alone:
            raise Fault("KAFKA003", "with a key store of Java's, positions cannot be given partition by partition",
                        "use stores of type PEM, or `earliest`, `latest` or one `timestamp`",
                        ("starting",))  # fmt: skip
        there = self._cluster().partitions()
        self._require_topics(there)
        return {topic: each for topic, each in there.items() if self._is_ours(topic)}

    def _subject(self, part: Literal["key", "value"]) -> RegistrySubject:
        return RegistrySubject(self.topics or tuple(self.assign), self.topic_pattern, part)

    def _records(self, spark: SparkSession, headers: bool) -> DataFrame:
        options = self._options() | {"includeHeaders": str(headers).lower()}
        options |= chosen_by(spark, self.session_choices)
        return self.reader(spark).format("kafka").options(**options).load()

    def _options(self) -> dict[str, str]:
        options = given_options(self) | self.address_options()
        options |= {"kafka.isolation.level": self.isolation_level}
        if self.topics:
            options["subscribe"] = ",".join(self.topics)
        if self.assign:
            options["assign"] = json.dumps({topic: list(partitions) for topic, partitions in self.assign.items()})
        options |= position_options("starting", self.starting, self._partitions)
        options |= position_options("ending", self.ending, self._partitions)
        if self.max_trigger_delay is not None:
            options["maxTriggerDelay"] = f"{to_milliseconds(self.max_trigger_delay)}ms"
        if self.poll_timeout is not None:
            options["kafkaConsumer.pollTimeoutMs"] = str(to_milliseconds(self.poll_timeout))
        if self.fetch_retry_interval is not None:
            options["fetchOffset.retryIntervalMs"] = str(to_milliseconds(self.fetch_retry_interval))
        return options

    def _metadata(self, key: Decoding | None) -> list[Column]:
        from pyspark.sql.functions import col, struct, when

        columns = [col(_COLUMNS.get(name, name)).alias(f"_{name}") for name in self.metadata]
        if key is None:
            return columns
        parts = key.columns(col(PARSED["key"]))
        decoded = when(col("key").isNotNull(), struct(*parts)) if key.is_record else parts[0]
        others = [col(_COLUMNS.get(name, name)).alias(f"_{name}") for name in self.metadata if name != "key"]
        return [decoded.alias("_key"), *others]


def _distinct(rows: DataFrame) -> DataFrame:
    names = [name.lower() for name in rows.columns]
    for name in rows.columns:
        if names.count(name.lower()) > 1:
            raise Fault("KAFKA005", f"there would be two columns `{name}`",
                        "leave it out of `metadata`, or out of the schema", ("metadata",))  # fmt: skip
    return rows


def _matches(pattern: str, topic: str) -> bool:
    try:
        return re.fullmatch(pattern, topic) is not None
    except re.error:  # Java knows more than Python
        return True


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("kafka", "{message}", {"message": message})
