"""The state that a processor declares: its `init` is called with a handle that only takes notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.facts.stored import ProcessorState, StateVariable
from penstock.pipeline.model import Step
from penstock.problems import Fault
from penstock.sinks.sink import Mode
from penstock.transforms.process import Process

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


def declared_state(step: Step, rows: StructType, mode: Mode) -> ProcessorState:
    """What a `process` step keeps, for rows with these columns. Raises Fault."""
    from pyspark.sql.types import StructType

    assert isinstance(step.spec, Process)  # noqa: S101 - for the type checker: the caller chose it
    declared = step.spec.process
    by_name = {field.name.lower(): field for field in rows}
    notes = _Notes(StructType([by_name[name.lower()] for name in declared.key]).jsonValue())
    try:
        step.spec.processor(rows, step.code).init(notes)  # type: ignore[arg-type]
    except Fault:
        raise
    except Exception as error:
        said = str(error).strip().splitlines()
        raise Fault("PROCESS007", f"`init` of `{declared.with_}` fails: {type(error).__name__}: {''.join(said[:1])}",
                    "mend it: Spark calls it before the first row", ("process", "with")) from error  # fmt: skip
    expiring = [variable.name for variable in notes.variables if variable.ttl]
    if expiring and declared.time_mode != "processing_time":
        message = f"state `{expiring[0]}` of `{declared.with_}` has a TTL, under `time: {declared.time_mode}`"
        fix = "set `time: processing_time`, or leave the TTL out"
        raise Fault("PROCESS008", message, fix, ("process", "time"))
    return ProcessorState(declared.time_mode, mode, tuple(notes.variables))


class _Notes:
    """What `init` gets: it writes down the state variables, and gives nothing that can be used yet."""

    def __init__(self, key: dict[str, Any]) -> None:
        self._key = key
        self.variables: list[StateVariable] = []

    def getValueState(self, stateName: str, schema: Any, ttlDurationMs: int | None = None) -> None:  # noqa: N802, N803
        self._note(stateName, "value", schema, ttlDurationMs)

    def getListState(self, stateName: str, schema: Any, ttlDurationMs: int | None = None) -> None:  # noqa: N802, N803
        self._note(stateName, "list", schema, ttlDurationMs)

    def getMapState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        userKeySchema: Any,  # noqa: N803
        valueSchema: Any,  # noqa: N803
        ttlDurationMs: int | None = None,  # noqa: N803
    ) -> None:
        self._note(stateName, "map", valueSchema, ttlDurationMs, _json(userKeySchema))

    def deleteIfExists(self, stateName: str) -> None:  # noqa: N802, N803
        """Nothing to do: it is a call of `init`, and changes no declaration."""

    def _note(self, name: str, kind: str, schema: Any, ttl_ms: int | None, map_key: Any = None) -> None:
        if name in {variable.name for variable in self.variables}:
            raise ValueError(f"state `{name}` is declared twice")
        self.variables.append(StateVariable(name, kind, self._key, (_json(schema),), map_key, ttl_ms is not None))


def _json(schema: Any) -> dict[str, Any]:
    from pyspark.sql.types import StructType

    read: Any = StructType.fromDDL(schema) if isinstance(schema, str) else schema
    found: dict[str, Any] = read.jsonValue()
    return found
