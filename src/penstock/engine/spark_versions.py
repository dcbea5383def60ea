"""What each supported Spark can do. Everything here was seen to work on that Spark; what is not listed did not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.problems import Problem, UserError

Connector = Literal["avro", "delta", "iceberg", "kafka", "local-fs", "postgresql"]
RealTimeOperator = Literal[
    "real-time stateless",
    "real-time stream-static join",
    "real-time union",
    "real-time aggregation",
    "real-time deduplication",
    "real-time transformWithState",
]
Feature = Connector | RealTimeOperator | Literal["real-time trigger in Python"]


@dataclass(frozen=True)
class SparkVersion:
    """One Spark minor version and what works on it."""

    spark: str
    connectors: tuple[Connector, ...]
    real_time: Literal["jvm trigger", "api"]
    """How Python starts Real-Time Mode: the JVM's trigger set on the writer, or `trigger(realTime=...)`."""
    real_time_operators: tuple[RealTimeOperator, ...]
    """Real-Time Mode runs no other operators. Python code is never among them; `transformWithState` is the JVM's."""

    @property
    def features(self) -> frozenset[Feature]:
        api: frozenset[Feature] = frozenset({"real-time trigger in Python"} if self.real_time == "api" else ())
        return api.union(self.connectors, self.real_time_operators)


_STATELESS: tuple[RealTimeOperator, ...] = (
    "real-time stateless",
    "real-time stream-static join",
    "real-time union",
)
_STATEFUL: tuple[RealTimeOperator, ...] = (
    "real-time aggregation",
    "real-time deduplication",
    "real-time transformWithState",
)

SUPPORTED: tuple[SparkVersion, ...] = (
    SparkVersion(
        spark="4.1",
        connectors=("avro", "delta", "iceberg", "kafka", "local-fs", "postgresql"),
        real_time="jvm trigger",
        real_time_operators=_STATELESS,
    ),
    SparkVersion(
        spark="4.2",
        connectors=("avro", "delta", "kafka", "local-fs", "postgresql"),
        real_time="api",
        real_time_operators=_STATELESS,
    ),
    SparkVersion(
        spark="4.3",
        connectors=("kafka", "local-fs", "postgresql"),
        real_time="api",
        real_time_operators=_STATELESS + _STATEFUL,
    ),
)


def minor(version: str) -> str:
    """The minor version of a full one: `4.1.3` gives `4.1`."""
    return ".".join(version.split(".")[:2])


def spark_version(minor: str) -> SparkVersion:
    """What Spark `minor` (such as `4.1`) can do; UserError ENGINE006 for a Spark that is not supported."""
    for one in SUPPORTED:
        if one.spark == minor:
            return one
    supported = ", ".join(one.spark for one in SUPPORTED)
    raise UserError(
        Problem(
            code="ENGINE006",
            message=f"Spark {minor} is not supported; {supported} are",
            fix=f"install one that is, such as `pip install 'pyspark=={SUPPORTED[0].spark}.*'`",
        )
    )


def versions_with(feature: Feature) -> tuple[str, ...]:
    """The Spark minor versions that have `feature`, oldest first."""
    return tuple(one.spark for one in SUPPORTED if feature in one.features)
