"""What a start would do to each checkpoint: asked of the manifests, the text, and where it is there, of Spark."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from penstock.checkpoint import generations
from penstock.checkpoint.damage import reset_command
from penstock.engine import resolve
from penstock.engine.session import TIME_ZONE, UTC
from penstock.facts.operators import Operator
from penstock.facts.signature import Recorded, Signature, TextShape
from penstock.facts.stored import CheckpointFacts
from penstock.notation.paths import is_local, to_local
from penstock.notation.references import without_secrets
from penstock.pipeline.model import Pipeline, Query, Step
from penstock.pipeline.project import Project
from penstock.pipeline.text_plan import plan_of_query
from penstock.plan import end_places
from penstock.plan.compare import Locate, changed_code, signature_findings
from penstock.plan.decoding import decoding_findings
from penstock.plan.ends import mode_findings, sink_findings, source_findings, unknown_state
from penstock.plan.expressions import digest
from penstock.plan.text_shape import code_not_judged, not_judged, shape_findings, stateful_operators, text_shape_of
from penstock.plan.time_zone import zone_findings
from penstock.plan.verdict import PlanFinding, QueryPlan
from penstock.prepare.signing import code_hashes, hiding
from penstock.problems import Where

_LIMIT = re.compile(r"\bLIMIT\s+(\S+)", re.IGNORECASE)


def plan_query(
    project: Project,
    written: Pipeline,
    pipeline: Pipeline,
    query: Query,
    born: CheckpointFacts | None,
    now: Signature | None,
    operators: Operator | None,
) -> QueryPlan:
    """What a start would do to one query. `now` is its signature, or None where Spark was not asked."""
    promise = pipeline.guarantee_of(query).promise
    if born is None:
        return QueryPlan(pipeline.name, query.name, is_new=True, promise=promise)
    if born.last_offset is None or not born.is_started:  # nothing has run on it: there is nothing to resume
        return QueryPlan(pipeline.name, query.name, is_new=True, generation=born.generation, promise=promise)
    recorded = born.recorded
    reset = reset_command(f"{pipeline.name}.{query.name}")
    original = next(one for one in written.queries if one.name == query.name)
    findings: list[PlanFinding] = []
    at = _at(pipeline, query)
    if recorded.signature is not None:
        read = end_places.sources(written, pipeline, query.name, project)
        before, order = recorded.signature.sources, now.sources if now else ()
        if now is None:
            before, order = _orders(recorded, _shape(project, pipeline, query), _streams(pipeline, query))
        findings += source_findings(recorded.sources, before, read, order, query.name, reset, at)
        stateful = recorded.signature.is_stateful
        findings += decoding_findings(recorded.sources, read, query.name, reset, at, stateful=stateful)
        zone = now.zone if now else _zone(project, query)
        findings += zone_findings(recorded.signature, zone, query.name, reset, query.origin.where)
        written_to = end_places.sinks(original, query, project)
        findings += sink_findings(recorded.sinks, written_to, query.name, reset, born.last_commit, at)
        findings += mode_findings(str(recorded.definition.get("mode", "")), query)
    if now is None:
        findings += _by_text(project, recorded, written, original, pipeline, query, reset,
                             _locator(pipeline, query, operators), holds_state=_holds_state(born))  # fmt: skip
    else:
        moved = any(one.code == "PLAN010" for one in findings)
        findings += _state(
            recorded, now, written, original, pipeline, query, reset, _locator(pipeline, query, operators), moved=moved,
            holds_state=_holds_state(born),
        )  # fmt: skip
    plan = QueryPlan(
        pipeline.name, query.name, _once(findings), generation=born.generation, last_batch=born.last_commit,
        promise=promise,
    )  # fmt: skip
    return plan.accepting(query.settings.accept)


def _state(
    recorded: Recorded,
    now: Signature,
    written: Pipeline,
    original: Query,
    pipeline: Pipeline,
    query: Query,
    reset: str,
    locate: Locate,
    *,
    moved: bool,
    holds_state: bool,
) -> Iterator[PlanFinding]:
    """`moved`: the streams are others, or in another order, which has a finding of its own."""
    before = recorded.signature
    if before is None:
        if _is_unknown(recorded, written, original, stateful=holds_state or now.is_stateful):
            yield unknown_state(query, reset)
        return
    if len(before.sources) == len(now.sources) and not moved:
        names = {old: new for old, new in zip(before.sources, now.sources, strict=True) if old != new}
        yield from signature_findings(before.renamed(names), now, query.name, reset, locate)


def _by_text(
    project: Project,
    recorded: Recorded,
    written: Pipeline,
    original: Query,
    pipeline: Pipeline,
    query: Query,
    reset: str,
    locate: Locate,
    *,
    holds_state: bool,
) -> Iterator[PlanFinding]:
    """What is known without Spark."""
    before = recorded.signature
    if before is None:
        if _is_unknown(recorded, written, original, stateful=holds_state or _keeps_state(pipeline, query)):
            yield unknown_state(query, reset)
        return
    # A definition holds every key of its steps, so the same one means the same text, but for what references stand for.
    same = _plain(recorded.definition["nodes"]) == _plain(_definition(written, original)["nodes"])
    same = same and recorded.definition.get("resolved") == _resolved(pipeline, query)
    shape = _shape(project, pipeline, query)
    found = tuple(shape_findings(recorded.shape, shape, same, query.name, reset, locate))
    yield from found
    if not found and not same and before.is_stateful and not _reads_same_types(recorded, written, original):
        yield not_judged(query.name, locate(0))
    changed = changed_code(before.code, code_hashes(pipeline, query, project.root)) if before.is_stateful else ()
    if changed:
        yield code_not_judged(query.name, changed, locate(0))


def _reads_same_types(recorded: Recorded, written: Pipeline, original: Query) -> bool:
    """A shape does not see the types of columns, nor how many rows a step limits."""
    before, now = recorded.definition["nodes"], _definition(written, original)["nodes"]

    def told(nodes: Mapping[str, Any]) -> str:
        formats = {name: one["spec"].get("format") for name, one in nodes.items() if "type" in one["spec"]}
        limits = [_LIMIT.findall(str(one["spec"])) for one in nodes.values()]
        return _plain({"formats": formats, "limits": limits})

    return told(before) == told(now)


def _is_unknown(recorded: Recorded, written: Pipeline, original: Query, *, stateful: bool) -> bool:
    """Was a query edited whose manifest has no signature, in a way that may not fit its checkpoint?"""
    before, now = recorded.definition, _definition(written, original)
    nodes = before.get("nodes", {}), now["nodes"]
    read = [{name: one["spec"] for name, one in every.items() if "type" in one["spec"]} for every in nodes]
    places = [
        {name: _place(one) for name, one in every.items()} for every in (*read, before.get("sinks", {}), now["sinks"])
    ]
    if places[0] != places[1] or places[2] != places[3]:
        return True
    many = sum("type" in one["spec"] for one in nodes[1].values()) > 1
    return (stateful or many) and _plain(nodes[0]) != _plain(nodes[1])


def _holds_state(born: CheckpointFacts) -> bool:
    """Has the checkpoint a folder of state? Of one on a storage that only Spark reaches, this is not asked."""
    return is_local(born.path) and (to_local(born.path) / "state").is_dir()


def _place(spec: Mapping[str, Any]) -> str:
    return _plain({key: spec[key] for key in ("type", *end_places.KEYS) if key in spec})


def _keeps_state(pipeline: Pipeline, query: Query) -> bool:
    shape = text_shape_of(plan_of_query(pipeline, query.name))
    return shape is None or bool(shape.operators)


def _shape(project: Project, pipeline: Pipeline, query: Query) -> TextShape | None:
    shape = text_shape_of(plan_of_query(pipeline, query.name))
    return shape and shape.hidden(hiding(project))


def _resolved(pipeline: Pipeline, query: Query) -> str:
    """The hash of the steps with what their references stand for."""
    steps = [(one.name, one.spec.given()) for one in pipeline.upstream(query.name) if isinstance(one, Step)]
    return digest(json.dumps(steps, default=str))


def _orders(
    recorded: Recorded, shape: TextShape | None, streams: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The streams as a text shows them, before and now. Without a shape, their order is not known."""
    if recorded.shape is not None and shape is not None:
        return recorded.shape.sources, shape.sources
    before = tuple(one.name for one in recorded.sources if not one.static)
    return before, before if sorted(before) == sorted(streams) else streams


def _zone(project: Project, query: Query) -> str:
    """The session time zone that a start would use."""
    given = {**resolve.project_settings(project, os.environ), **query.settings.spark}
    return str(given.get(TIME_ZONE, UTC))


def _streams(pipeline: Pipeline, query: Query) -> tuple[str, ...]:
    return tuple(one.name for one in pipeline.sources_of(query.name) if not one.spec.is_static)


def _at(pipeline: Pipeline, query: Query) -> Any:
    origins = {node.name: node.origin for node in (*pipeline.sources, *pipeline.sinks, *pipeline.steps)}

    def at(name: str, key: str) -> Where | None:
        origin = origins.get(name, query.origin)
        return origin.at(key) if key else origin.where

    return at


def _locator(pipeline: Pipeline, query: Query, operators: Operator | None) -> Locate:
    """The step of each operator with state: those of Spark's plan, inputs first, by their number."""
    found = [one.node for one in stateful_operators(operators)] if operators is not None else []
    origins = {node.name: node for node in (*pipeline.sources, *pipeline.steps)}

    def locate(number: int) -> tuple[str, Where | None]:
        name = found[number] if 0 <= number < len(found) else query.name
        node = origins.get(name)
        if node is None:
            return query.name, query.origin.where
        key = next(iter(node.spec.given()), "") if isinstance(node, Step) else ""
        return name, node.origin.at(key) if key else node.origin.where

    return locate


def _once(findings: list[PlanFinding]) -> tuple[PlanFinding, ...]:
    return tuple(dict.fromkeys(findings))


def _plain(definition: Mapping[str, Any]) -> str:
    return json.dumps(definition, sort_keys=True, default=str)


def recorded_now(project: Project, written: Pipeline, pipeline: Pipeline, query: Query, now: Signature) -> Recorded:
    """What a start of the query records in its manifest."""
    original = next(one for one in written.queries if one.name == query.name)
    return Recorded(
        _definition(written, original) | {"resolved": _resolved(pipeline, query)},
        now,
        end_places.sources(written, pipeline, query.name, project),
        end_places.sinks(original, query, project),
        _shape(project, pipeline, query),
    )


def _definition(written: Pipeline, query: Query) -> dict[str, Any]:
    """As written, without passwords that were written out."""
    found: dict[str, Any] = json.loads(json.dumps(generations.definition(written, query), default=str))
    return cast("dict[str, Any]", without_secrets("", found))
