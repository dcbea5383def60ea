"""What is stored: folders, checkpoints, and the state that processors declare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.facts.signature import Recorded


@dataclass(frozen=True)
class FolderFacts:
    """What a path of a pipeline is on disk, when it was looked at."""

    path: str
    exists: bool
    is_file: bool = False
    writable: bool = True
    files: tuple[str, ...] = ()
    """Names of the files in it, the first ones of many."""
    partition_columns: tuple[str, ...] = ()
    """The keys of its `key=value` sub-folders, outermost first."""
    last_sink_batch: int | None = None
    """The newest batch in the log that Spark's file sink keeps of its folder."""


@dataclass(frozen=True)
class BatchCode:
    """What the text of a user's function for whole batches tells."""

    writes: int
    """How often it writes rows."""
    uses_batch: bool
    """Does it look at the batch's number, or ask it to do something once?"""


@dataclass(frozen=True)
class ReadFile:
    """A file that a query has read, as its checkpoint remembers it."""

    path: str
    modified_ms: int
    batch: int
    modified_now_ms: int | None
    """None when the file is gone."""


@dataclass(frozen=True)
class CheckpointFacts:
    """One generation of a query's checkpoint."""

    query: str
    generation: int
    path: str
    id: str
    """The identity that its manifest gives it."""
    spark_id: str | None = None
    """The identity that Spark finds in it; None when that is lost."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings fixed at its birth."""
    partition_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By source, the partition columns that it was born with."""
    last_offset: int | None = None
    last_commit: int | None = None
    read_files: tuple[ReadFile, ...] = ()
    recorded: Recorded = field(default_factory=Recorded, compare=False)
    is_started: bool = True
    """Has a run used it? A reset makes one that waits for its first."""

    @property
    def batch_under_way(self) -> int | None:
        """A batch whose offsets are planned and whose commit is not written yet."""
        if self.last_offset is None or self.last_offset == self.last_commit:
            return None
        return self.last_offset


@dataclass(frozen=True)
class StateVariable:
    """A state variable of a processor. Schemas are in the JSON that Spark keeps them in."""

    name: str
    kind: str
    """`value`, `list` or `map`."""
    key: Mapping[str, Any]
    """The columns that rows are grouped by."""
    values: tuple[Mapping[str, Any], ...]
    """What it holds, in every version that some of it may still be written in, the newest last."""
    map_key: Mapping[str, Any] | None = None
    ttl: bool = False


@dataclass(frozen=True)
class ProcessorState:
    """The state of one `process` step: as its class declares it, or as its checkpoint has it."""

    time: str
    mode: str
    variables: tuple[StateVariable, ...]
    encoding: str = "avro"
    """How a checkpoint writes it; only `avro` can follow a changed schema."""
