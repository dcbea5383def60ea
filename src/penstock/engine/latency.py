"""What a latency word means: a trigger, and the settings of a query's session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.pipeline.model import Latency, Query
from penstock.spec import to_option
from penstock.triggers import Trigger

_STATE = "spark.sql.streaming.stateStore"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BIRTH_SETTINGS = (
    "spark.sql.shuffle.partitions",
    f"{_STATE}.providerClass",
    f"{_STATE}.checkpointFormatVersion",
    "spark.sql.streaming.multipleWatermarkPolicy",
)
"""Settings that a checkpoint keeps for life. Spark ignores a change of some and forgets others."""

_TRIGGERS: dict[Latency, Trigger] = {
    "realtime": Trigger("default"),
    "low": Trigger("default"),
    "balanced": Trigger("processing_time", "5 seconds"),
    "throughput": Trigger("processing_time", "1 minute"),
}


@dataclass(frozen=True)
class Profile:
    """How a query runs."""

    trigger: Trigger
    settings: dict[str, str]


def profile(query: Query, cores: int, project: Mapping[str, str] | None = None) -> Profile:
    """The profile of a query on a machine with so many cores. What the project sets wins, then what the query sets."""
    settings = {
        # PySpark's 200 partitions are 200 tasks and 200 state stores for every batch, however small.
        "spark.sql.shuffle.partitions": str(cores),
        f"{_STATE}.providerClass": ROCKSDB,
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE}.checkpointFormatVersion": "2",
        "spark.sql.streaming.multipleWatermarkPolicy": "min",
    }
    settings |= {key: value for key, value in (project or {}).items() if key.startswith("spark.sql.")}
    settings |= {key: to_option(value) for key, value in query.settings.spark.items()}
    return Profile(query.trigger or _TRIGGERS[query.latency], settings)
