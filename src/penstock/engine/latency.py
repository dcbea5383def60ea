"""What a latency word means: a trigger, and the settings of a query's session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.pipeline.model import Latency, Query
from penstock.spec import to_option
from penstock.state_store import FORMAT, PROVIDER, State, merged
from penstock.triggers import Trigger
from penstock.watermark import POLICY

BIRTH_SETTINGS = ("spark.sql.shuffle.partitions", PROVIDER, FORMAT, POLICY)
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


def profile(query: Query, cores: int, project: Mapping[str, str] | None = None, state: State | None = None) -> Profile:
    """The profile of a query on a machine with so many cores. What the project sets wins, then what the query sets.

    `state` is the project's; of both, Spark's own settings win.
    """
    own = query.settings
    store = merged(state, own.state).settings
    settings = {
        # PySpark's 200 partitions are 200 tasks and 200 state stores for every batch, however small.
        "spark.sql.shuffle.partitions": str(cores),
        POLICY: "min",
    } | store
    settings |= {key: value for key, value in (project or {}).items() if key.startswith("spark.sql.")}
    settings |= store if own.state else {}
    settings |= {POLICY: own.watermark_policy} if own.watermark_policy else {}
    settings |= {key: to_option(value) for key, value in own.spark.items()}
    return Profile(query.trigger or _TRIGGERS[query.latency], settings)
