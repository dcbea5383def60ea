"""What a latency word means: a trigger, and the settings of a query's session, each with its reason."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.connections.kafka_options import (
    BATCH_BYTES,
    FETCH_BYTES,
    FETCH_WAIT,
    LINGER,
    POLL_RECORDS,
    session_setting,
)
from penstock.engine.spark_versions import spark_version
from penstock.facts.operators import Operator
from penstock.pipeline.model import Pipeline, Query
from penstock.pipeline.progress_beside_work import is_chosen
from penstock.query.async_progress import DEFAULT_INTERVAL, interval_of
from penstock.query.state_store import FORMAT, PROVIDER, State, merged
from penstock.query.triggers import Latency, Trigger
from penstock.query.watermark import POLICY
from penstock.spec import to_option

PARTITIONS = "spark.sql.shuffle.partitions"
FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
BUFFER_WAIT = "spark.shuffle.streaming.networkBufferMaxWaitTimeMs"
HEARTBEAT = "spark.executor.heartbeatInterval"
BIRTH_SETTINGS = (PARTITIONS, PROVIDER, FORMAT, POLICY)
"""Settings that a checkpoint keeps for life. Spark ignores a change of some and forgets others."""
OFF = "false"
QUICK: tuple[Latency, ...] = ("realtime", "low")
"""The words for which a start may fetch a jar that makes local files quicker."""
RENAMING = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""Writes a file of a checkpoint with one rename; Hadoop's other way starts processes for each."""

_REPEATS = "a crash repeats what was written in this time, and not the last batch alone"
_TRIGGER_WHY: dict[Latency, str] = {
    "realtime": "rows leave as they come; a batch's length only says how often progress is written down",
    "low": "batch after batch, as soon as there are rows",
    "balanced": "few enough batches for their fixed cost not to matter",
    "throughput": "large batches, for the least work per row",
}


@dataclass(frozen=True)
class Choice:
    """One value of a profile."""

    value: str
    why: str
    costs: str = ""
    """What one gives up for it."""


@dataclass(frozen=True)
class Profile:
    """How a query runs."""

    trigger: Trigger
    trigger_why: str
    choices: Mapping[str, Choice]
    """By setting."""
    async_progress: Choice | None = None
    """How often progress is written down beside the work, or `false`; None where nothing asks for it."""

    @property
    def settings(self) -> dict[str, str]:
        return {name: choice.value for name, choice in self.choices.items()}

    @property
    def interval(self) -> str | None:
        """How often progress is written down beside the work; None where each batch waits for it."""
        return self.async_progress.value if self.async_progress and self.async_progress.value != OFF else None

    def overlaid(self, settings: Mapping[str, str], why: str) -> Profile:
        """The same with other values, for one reason."""
        return replace(self, choices={**self.choices, **{name: Choice(value, why) for name, value in settings.items()}})


SHORT_FETCH: Mapping[str, Choice] = {
    session_setting(FETCH_WAIT): Choice(
        "10", "a batch waits until the fetch before it gives up on further records, 500 ms by default"
    )
}
"""For batches that follow each other: a fetch that finds nothing must not hold up the next batch."""
LARGE_REQUESTS: Mapping[str, Choice] = {
    session_setting(POLL_RECORDS): Choice("5000", "ten times the records for each call of Kafka's consumer"),
    session_setting(FETCH_BYTES): Choice(
        str(8 * 1024 * 1024), "up to 8 MB of a partition in one fetch, 1 MB by default", "8 MB of memory a partition"
    ),
    session_setting(LINGER): Choice("20", "records wait up to 20 ms for others, and leave in fewer requests"),
    session_setting(BATCH_BYTES): Choice(str(256 * 1024), "up to 256 kB of records in one request, 16 kB by default"),
}
"""For many records in a batch: the fixed cost of a request is shared by more of them. Guarantees stay the same."""


def profile(
    query: Query,
    cores: int,
    project: Mapping[str, str] | None = None,
    state: State | None = None,
    *,
    quick_files: bool = False,
    session_choices: Collection[str] = (),
    trigger: Trigger | None = None,
) -> Profile:
    """The profile of a query on a machine with so many cores. What the project sets wins, then what the query sets.

    `state` is the project's; of both, Spark's own settings win. With `quick_files`, its checkpoint is on a local disk
    and its files cost no process each. `session_choices`: what its sources and sinks leave to the session. `trigger`:
    the one that the run asks for, in place of the query's own.
    """
    own = query.settings
    store = merged(state, own.state).settings
    why = "set by you" if own.trigger else _TRIGGER_WHY[query.latency]
    chosen = Profile(query.trigger, why, {PARTITIONS: _partitions(query.latency, cores)})
    chosen = chosen.overlaid({POLICY: "min"}, "with several watermarks, no input's rows are dropped for another's")
    chosen = chosen.overlaid(store, "state on disk that grows beyond memory, and writes what changed alone")
    if quick_files:
        chosen = chosen.overlaid({FILE_MANAGER: RENAMING}, "a checkpoint on a local disk: one rename for each file")
    offered = _for_kafka(query.latency, trigger or query.trigger)
    asked_for = {name: choice for name, choice in offered.items() if name in session_choices}
    chosen = replace(chosen, choices={**chosen.choices, **asked_for})
    of_project = {key: value for key, value in (project or {}).items() if key.startswith("spark.sql.")}
    chosen = chosen.overlaid(of_project, "set by you for the project")
    chosen = chosen.overlaid(store if own.state else {}, "set by you in `state`")
    policy = {POLICY: own.watermark_policy} if own.watermark_policy else {}
    return chosen.overlaid(policy | {key: to_option(value) for key, value in own.spark.items()}, "set by you")


def _for_kafka(latency: Latency, trigger: Trigger) -> Mapping[str, Choice]:
    if trigger.emits_early:
        return {}
    takes_much = latency in ("balanced", "throughput") or trigger.ends
    return {**SHORT_FETCH, **LARGE_REQUESTS} if takes_much else SHORT_FETCH


def _partitions(latency: Latency, cores: int) -> Choice:
    """Spark's 200 are 200 tasks and state stores for every batch, however small."""
    fixed = "fixed when the checkpoint is born"
    match latency:
        case "realtime":
            return Choice("1", "each holds a core for the whole of a batch", fixed)
        case "low":
            half = max(1, cores // 2)
            return Choice(str(half), "half the cores: each is a task and a state store for every batch", fixed)
        case _:
            return Choice(str(cores), "as many as there are cores", fixed)


def async_progress(
    pipeline: Pipeline, query: Query, plan: Operator | None, settings: Mapping[str, Any]
) -> Choice | None:
    """Is progress written down beside the work, and how often? What the query sets wins.

    `settings` are those of its session.
    """
    asked = query.settings.async_progress
    if asked is not None:
        return Choice(interval_of(asked) or OFF, "set by you", _REPEATS if asked else "")
    if not is_chosen(pipeline, query, plan, settings):
        return None
    return Choice(DEFAULT_INTERVAL, "no batch waits until its progress is written down", _REPEATS)


def process_settings(pipelines: Sequence[Pipeline], spark: str) -> dict[str, str]:
    """What the words ask of the whole process, on a Spark such as `4.3`."""
    if not any(query.trigger.kind == "real_time" for pipeline in pipelines for query in pipeline.queries):
        return {}
    # Tasks that last for minutes tell with a heartbeat what they have done so far, every 10 s by default.
    settings = {HEARTBEAT: "1s"}
    if "real-time aggregation" in spark_version(spark).features:
        # Rows between two tasks wait for others to come along, 50 ms by default.
        settings[BUFFER_WAIT] = "1"
    return settings


def wants_quick_files(pipelines: Sequence[Pipeline]) -> bool:
    return any(query.latency in QUICK for pipeline in pipelines for query in pipeline.queries)
