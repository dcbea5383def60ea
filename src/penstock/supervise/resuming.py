"""A checkpoint before it is resumed: is it whole, and do its sinks fit it? And how a run leaves it."""

from __future__ import annotations

import contextlib

from penstock.checkpoint import seals, verify
from penstock.checkpoint.damage import reset_command, stops
from penstock.checkpoint.generations import cannot_write
from penstock.checks.rule import Disk
from penstock.engine.session import Engine
from penstock.facts.stored import CheckpointFacts
from penstock.plan.resumable import held_findings
from penstock.plan.sink_facts import remember
from penstock.prepare.ready import Ready
from penstock.problems import Fault, Problem, UserError
from penstock.storage.storage import Storage


def damages(engine: Engine, item: Ready, disk: Disk) -> list[Problem]:
    """What is wrong with the checkpoint that a query would resume. Heals what a start can heal. Raises UserError."""
    query = item.built.query
    known = disk.checkpoints.get(query.name)
    if known is None or item.pipeline.is_ephemeral(query):
        return []
    storage = engine.storage(known.path)
    name = f"{item.pipeline.name}.{query.name}"
    if not known.settings and known.last_commit is not None and item.built.is_stateful:
        # A reset has set its place, and nothing has run since: the text has changed in between.
        return [Problem("CHECKPOINT024", f"the new checkpoint of `{name}` begins at a place of its own, and the query"
                        " keeps state, which would be missing", f"run `{reset_command(name)}`",
                        query.origin.where)]  # fmt: skip
    try:
        found = verify.cheap(storage, known.path, name=name, identity=known.id)
        if not stops(found):
            verify.heal(storage, found)
    except OSError as error:
        raise UserError(cannot_write(known.path, error, query)) from None
    return [damage.problem(query.origin.where) for damage in stops(found)]


def sinks_that_do_not_fit(engine: Engine, item: Ready, disk: Disk) -> list[Problem]:
    """Sinks that are ahead of the checkpoint, or other ones than it was created with."""
    query = item.built.query
    known = disk.checkpoints.get(query.name)
    if known is None or item.pipeline.is_ephemeral(query):
        return []
    storage, session = engine.storage(known.path), item.built.session
    found = held_findings(item.pipeline, query, known, storage, engine.storage, session)
    return [finding.problem for finding in found]


def remember_sinks(engine: Engine, item: Ready, checkpoint: CheckpointFacts) -> None:
    query = item.built.query
    storage, session = engine.storage(checkpoint.path), item.built.session
    try:
        remember(query, checkpoint, storage, engine.storage, session)
    except Fault as fault:
        raise UserError(fault.at(query.origin.where)) from None
    except OSError as error:
        raise UserError(cannot_write(checkpoint.path, error, query)) from None


def seal_all(kept: list[tuple[Storage, str]]) -> None:
    """Notes how the run leaves each checkpoint. A checkpoint without a seal, or with an older one, can be resumed."""
    for storage, path in kept:
        with contextlib.suppress(OSError):
            if storage.exists(f"{path}.json"):  # a refused start has removed its new generation
                seals.write(storage, path)
