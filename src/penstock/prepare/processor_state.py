"""The state of `process` steps before a start: what they declare, and whether their checkpoint can follow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.checkpoint.damage import reset_command
from penstock.checkpoint.state_changes import state_changes
from penstock.checkpoint.state_files import processor_states
from penstock.engine.build import Built
from penstock.engine.declared_state import declared_state
from penstock.facts.stored import CheckpointFacts, ProcessorState
from penstock.pipeline.model import Pipeline, Query, Step
from penstock.problems import Fault, Problem
from penstock.storage.storage import Storage
from penstock.transforms.process import Process


def processes_of(pipeline: Pipeline, query: Query) -> tuple[Step, ...]:
    nodes = pipeline.upstream(query.name)
    return tuple(node for node in nodes if isinstance(node, Step) and isinstance(node.spec, Process))


def state_problems(
    pipeline: Pipeline, built: Built, born: CheckpointFacts | None, storage: Storage | None
) -> Iterator[Problem]:
    """What Spark would say against the state of a query only in its first batch."""
    declared: dict[str, ProcessorState] = {}
    steps = {step.name: step for step in processes_of(pipeline, built.query)}
    for step in steps.values():
        try:
            rows = built.frames[step.spec.inputs[0]]
            declared[step.name] = declared_state(step, rows.schema, built.query.settings.mode)
        except Fault as fault:
            yield fault.at(step.origin.at(*fault.keys))
    if born is None or storage is None or len(declared) < len(steps):
        return
    for name, before in paired(declared, processor_states(storage, born.path)):
        command = reset_command(f"{pipeline.name}.{built.query.name}")
        for change in state_changes(name, before, declared[name], command):
            origin = steps[name].origin
            where = origin.at("process", *change.keys) if change.keys else built.query.origin.at("mode")
            yield Problem(change.code, change.message, change.fix, where, change.severity)


def paired(declared: dict[str, ProcessorState], kept: Sequence[ProcessorState]) -> Iterator[tuple[str, ProcessorState]]:
    """Each step with its state in the checkpoint, which knows no names of steps: the variables tell."""
    left = list(kept)
    waiting = []
    for name, state in declared.items():
        mine = {variable.name for variable in state.variables}
        same = [one for one in left if {variable.name for variable in one.variables} == mine]
        if len(same) == 1:
            left.remove(same[0])
            yield name, same[0]
        else:
            waiting.append(name)
    # With more than one left over, whose is whose is anybody's guess: Spark tells in the first batch.
    if len(waiting) == len(left) == 1:
        yield waiting[0], left[0]
