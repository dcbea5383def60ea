"""Records into Kafka topics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.connections.kafka import KafkaAddress, require_address
from penstock.connections.kafka_cluster import Cluster
from penstock.connections.kafka_options import BATCH_BYTES, LINGER, chosen_by, session_setting
from penstock.facts.stores import Store
from penstock.formats.messages import (
    JsonMessageWrite,
    RawMessageWrite,
    RegistrySubject,
    TextMessageWrite,
    as_json,
)
from penstock.formats.messages_any import AnyMessageWrite
from penstock.notation.durations import Duration, to_milliseconds
from penstock.notation.sql_text import quoted
from penstock.problems import Fault, did_you_mean
from penstock.query.guarantees import Guarantee
from penstock.sinks.batch import Batch
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.spec import given_options, spark_option

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

RECORD_ID = "penstock-id"
"""The header that holds a record's id, the same however often the record is written."""
_TOPIC, _GIVEN, _OWN = "topic", "_penstock_headers", "_penstock_id"


class Kafka(SinkSpec, KafkaAddress):
    """Each row as a record of a Kafka topic. At-least-once: a crash repeats at most the last batch.

    - With `async_progress`, which `latency: low` turns on, a crash repeats the last batch and the work of about one
      interval before it.
    - Every record has a header `penstock-id`: 128 bits of xxhash64 over topic, key and value. A repeated record has the
      same one, so a reader can tell repeats. So do two rows that are equal in all of these. With `record_id` it is a
      sha256 in hex over those columns: slower, and nobody can make up a row with the id of another.
    - A row whose topic is NULL stops the query.
    """

    type: Literal["kafka"] = "kafka"
    connection: str | None = Field(None, description="A connection of `penstock.yaml`: its keys, where not given here.")
    topic: str | None = Field(None, description="The topic that all rows go to.")
    topic_column: str | None = Field(
        None, description="The column that names each row's topic, in place of `topic`; by default the column `topic`."
    )
    format: AnyMessageWrite = Field(
        default_factory=JsonMessageWrite,
        description="How values are written: `json`, `avro`, `text` or `raw`, with its own options.",
    )
    value: tuple[str, ...] = Field(
        (), description="The columns of the value; by default all but those of topic, partition and headers."
    )
    key: tuple[str, ...] = Field((), description="The columns of the key. Records of one key stay in order.")
    key_format: AnyMessageWrite | None = Field(
        None, description="How keys are written; by default one column as text (BINARY as it is), several as JSON."
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Further headers: `{name: column}`. A NULL is a header without a value."
    )
    record_id: tuple[str, ...] = Field(
        (), description="The columns that tell one record from another, for the header `penstock-id`."
    )
    partition_column: str | None = Field(None, description="The column, INT, that says which partition a row goes to.")

    dead_letter_topic: str | None = Field(
        None,
        description="The topic of the dead letters of a query that keeps no state: they leave with its rows, in place"
        " of a query of their own.",
    )

    acks: Literal["all", 0, 1] = spark_option(
        "all", "Who must have a record before it counts as written: `all` replicas, the leader (1), nobody (0).",
        name="kafka.acks",
    )  # fmt: skip
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] | None = spark_option(
        None, "How batches of records are packed. Kafka's default: none.", name="kafka.compression.type"
    )
    linger: Duration | None = Field(None, description="How long to wait for more records before some are sent.")
    batch_bytes: int | None = spark_option(
        None, "Records for one partition are sent together up to this size. Kafka's default: 16384.",
        name="kafka.batch.size", ge=0,
    )  # fmt: skip
    max_request_bytes: int | None = spark_option(
        None, "The largest request, and so the largest record. Kafka's default: 1048576.",
        name="kafka.max.request.size", gt=0,
    )  # fmt: skip
    idempotence: bool | None = spark_option(
        None, "Whether the client's own retries never write twice. Kafka's default: true, with `acks: all`.",
        name="kafka.enable.idempotence",
    )  # fmt: skip
    delivery_timeout: Duration | None = Field(
        None, description="How long a record may take, retries included. Kafka's default: 2 minutes."
    )

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("at-least-once", f"a crash repeats at most the last batch; the header `{RECORD_ID}` tells repeats"),
        async_progress=True,
        runs_queries=False,
        counts_rows=True,
    )
    example: ClassVar[str] = "{of: alerts, type: kafka, servers: 'localhost:9092', topic: alerts, key: [card_id]}"

    @model_validator(mode="after")
    def _keys_that_go_together(self) -> Self:
        require_address(self, self.connection)
        if self.topic is not None and self.topic_column is not None:
            raise _wrong("give `topic` or `topic_column`, not both")
        if self.key_format is not None and not self.key:
            raise _wrong("`key_format` needs `key`, the columns of the key")
        if RECORD_ID in self.headers:
            raise _wrong(f"the header `{RECORD_ID}` is Penstock's own; `record_id` says what it is made of")
        if self.acks != "all" and self.idempotence:
            raise _wrong("`idempotence: true` needs `acks: all`")
        return self

    @property
    def connectors(self) -> tuple[str, ...]:
        formats = {one.type for one in (self.format, self.key_format) if one is not None}
        return ("avro", "kafka") if "avro" in formats else ("kafka",)

    @property
    def stores(self) -> tuple[Store, ...]:
        named = (self.topic, self.dead_letter_topic)
        return self.topic_stores([topic for topic in named if topic is not None], self.connection)

    @property
    def session_choices(self) -> frozenset[str]:
        given = {LINGER: self.linger, BATCH_BYTES: self.batch_bytes}
        return frozenset(session_setting(option) for option, value in given.items() if value is None)

    def guarantee_with(self, interval: str | None) -> Guarantee:
        promised = self.declared_capabilities.guarantee
        if interval is None or promised.promise == "none":
            return promised
        work = (
            f"the last batch and about {interval} of work before it" if to_milliseconds(interval) else "a few batches"
        )
        return replace(promised, reason=f"a crash repeats {work}; the header `{RECORD_ID}` tells repeats")

    def probe(self) -> None:
        cluster = Cluster(self, ("connection",) if self.connection else ("servers",))
        if self.is_for_java_alone:
            cluster.reach()
            return
        there = cluster.partitions()
        if self.topic is not None and self.topic not in there and cluster.creates_topics() is False:
            raise Fault("KAFKA003", f"the topic `{self.topic}` is not there, and the broker makes none by itself",
                        "make it, or mend its name", ("topic",))  # fmt: skip

    def judge(self, rows: DataFrame) -> None:
        types = dict(rows.dtypes)
        for keys, name in self._named_columns():
            if name not in types:
                near = did_you_mean(name, types)
                raise Fault("KAFKA005", f"the rows have no column `{name}`{near}",
                            f"select it in the step; there are: {', '.join(types)}", keys)  # fmt: skip
        if self.topic is None:
            self._require(types, self._topic_column, "string", "topic_column")
        if self.partition_column is not None:
            self._require(types, self.partition_column, "int", "partition_column")
        for header, name in self.headers.items():
            if types[name] not in ("string", "binary"):
                raise Fault("KAFKA005", f"`{name}` is {types[name].upper()}, and a header takes STRING or BINARY",
                            "cast it in the step", ("headers", header))  # fmt: skip
        columns = self.value_columns(rows)
        if not columns:
            raise Fault("KAFKA005", "no column is left for the value", "name its columns: `value: […]`")
        self.format.check(rows, columns)
        if self.key:
            self._key_writer(rows).check(rows, self.key)

    def prepare(self, rows: DataFrame) -> None:
        self.encoded(rows)  # registers the schema, where there is a registry

    @property
    def declared_capabilities(self) -> SinkCapabilities:
        if self.acks == "all":
            return self.capabilities
        loses = f"with `acks: {self.acks}` a broker that fails loses records that it has confirmed"
        return replace(self.capabilities, guarantee=Guarantee("none", loses))

    def encoded(self, rows: DataFrame) -> DataFrame:
        """Columns `topic, key, value, partition, headers`, as Spark's Kafka sink takes them."""
        from pyspark.sql.functions import array, col, concat, lit

        topics = (self.topic,) if self.topic is not None else ()
        value = self.format.encoded(rows, self.value_columns(rows), RegistrySubject(topics))
        topic = lit(self.topic) if self.topic is not None else col(quoted(self._topic_column))
        key = lit(None).cast("binary")
        if self.key:
            key = self._key_writer(rows).encoded(rows, self.key, RegistrySubject(topics, part="key"))
        messages = {_TOPIC: topic, "key": key, "value": value}
        if self.partition_column is not None:
            messages["partition"] = col(quoted(self.partition_column))
        given = [_header(name, col(quoted(column)).cast("binary")) for name, column in self.headers.items()]
        messages[_GIVEN] = array(*given) if given else lit(None)
        messages[_OWN] = as_json(self.record_id).cast("binary") if self.record_id else lit(None)
        # Two steps, so that the value is encoded once although its id is made of it.
        first = rows.select(*(column.alias(name) for name, column in messages.items()))
        record_id = _sha256(col(_OWN)) if self.record_id else _content_hash(self.topic)
        own = array(_header(RECORD_ID, record_id))
        headers = concat(col(_GIVEN), own) if given else own
        return first.withColumn("headers", headers).drop(_GIVEN, _OWN)

    def start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        return writer.format("kafka").options(**self._options(writer._spark)).start()

    def write(self, rows: DataFrame, batch: Batch) -> None:
        rows.write.format("kafka").options(**self._options(rows.sparkSession)).save()

    @property
    def _topic_column(self) -> str:
        return self.topic_column or _TOPIC

    def value_columns(self, rows: DataFrame) -> Sequence[str]:
        if self.value:
            return self.value
        apart = {*self.headers.values(), self.partition_column, None if self.topic else self._topic_column}
        left = [name for name in rows.columns if name not in apart]
        one_alone = isinstance(self.format, TextMessageWrite | RawMessageWrite)
        return ["value"] if one_alone and "value" in left else left

    def _key_writer(self, rows: DataFrame) -> AnyMessageWrite:
        if self.key_format is not None:
            return self.key_format
        if len(self.key) > 1:
            return JsonMessageWrite()
        return RawMessageWrite() if dict(rows.dtypes)[self.key[0]] == "binary" else TextMessageWrite()

    def _named_columns(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Every column that the rows must have, with the place where the user named it."""
        if self.topic is None:
            yield ("topic_column",) if self.topic_column else (), self._topic_column
        if self.partition_column is not None:
            yield ("partition_column",), self.partition_column
        for field in ("value", "key", "record_id"):
            for index, name in enumerate(getattr(self, field)):
                yield (field, index), name
        for header, name in self.headers.items():
            yield ("headers", header), name

    def _require(self, types: dict[str, str], name: str, kind: str, key: str) -> None:
        if types[name] != kind:
            raise Fault("KAFKA005", f"`{name}` is {types[name].upper()}, and `{key}` takes {kind.upper()}",
                        "cast it in the step", (key,) if getattr(self, key) else ())  # fmt: skip

    def _options(self, session: SparkSession) -> dict[str, str]:
        options = given_options(self) | self.address_options() | chosen_by(session, self.session_choices)
        options["includeHeaders"] = "true"
        if self.linger is not None:
            options["kafka.linger.ms"] = str(to_milliseconds(self.linger))
        if self.delivery_timeout is not None:
            options["kafka.delivery.timeout.ms"] = str(to_milliseconds(self.delivery_timeout))
        return options


def _header(name: str, value: Column) -> Column:
    from pyspark.sql.functions import lit, struct

    return struct(lit(name).alias("key"), value.alias("value"))


def _sha256(data: Column) -> Column:
    from pyspark.sql.functions import sha2

    return sha2(data, 256).cast("binary")


def _content_hash(topic: str | None) -> Column:
    """128 bits over topic, key and value. Spark's hash passes over what is NULL, so that is told too.

    It must be cheap: with a sha256 a small record took 15 % more CPU in all.
    """
    from pyspark.sql.functions import col, concat, lit, xxhash64
    from pyspark.sql.functions import hex as in_hex

    named = lit(topic) if topic is not None else col(_TOPIC)
    parts = (named, col("key").isNull(), col("key"), col("value").isNull(), col("value"))
    return concat(in_hex(xxhash64(*parts)), lit("-"), in_hex(xxhash64(lit(RECORD_ID), *parts))).cast("binary")


def _wrong(message: str) -> PydanticCustomError:
    return PydanticCustomError("kafka", "{message}", {"message": message})
