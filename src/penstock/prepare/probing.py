"""Asks services whether they are there, before Spark starts."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

from penstock.engine import resolve
from penstock.pipeline.model import Sink, Source
from penstock.prepare.judging import Judged
from penstock.problems import Fault, Problem


def probed(judged: Judged) -> tuple[Problem, ...]:
    """What cannot be reached of all that the pipelines read and write; found in seconds, before Spark starts."""
    found = [problem for problems in probed_by_pipeline(judged).values() for problem in problems]
    return tuple(dict.fromkeys(found))


def probed_by_pipeline(judged: Judged) -> dict[str, tuple[Problem, ...]]:
    """The same for each pipeline that uses something that cannot be reached."""
    asked = [(pipeline.name, node) for pipeline in judged.resolved for node in judged.used(pipeline)]
    to_come = {joint.reader for joint in judged.graph.joints if getattr(joint.sink.spec, "create_table", False)}
    found: dict[str, list[Problem]] = {}
    with ThreadPoolExecutor(max_workers=8) as threads:
        for (name, node), problem in zip(asked, threads.map(_probed, (node for _, node in asked)), strict=True):
            if problem and not (problem.code == "POSTGRES003" and (name, node.name) in to_come):
                found.setdefault(name, []).append(problem)
    return {name: resolve.masked(problems, judged.project, os.environ) for name, problems in found.items()}


def not_judged_offline(judged: Judged) -> dict[str, tuple[Problem, ...]]:
    """By pipeline that Spark cannot judge without a service, a warning that says so."""
    asking = {
        pipeline.name: source
        for pipeline in judged.resolved
        for source in judged.used(pipeline)
        if isinstance(source, Source) and source.spec.declared_capabilities.asks_service_for_columns
    }
    return {
        name: (
            Problem(
                "CHECK003",
                f"pipeline `{name}` was not judged by Spark: source `{source.name}` ({source.spec.type}) must be asked"
                " for its columns or positions first",
                "run `penstock check` without `--offline` where the service can be reached",
                source.origin.where,
                "warning",
            ),
        )
        for name, source in asking.items()
    }


def _probed(node: Source | Sink) -> Problem | None:
    try:
        node.spec.probe()
    except Fault as fault:
        return fault.at(node.origin.at(*fault.keys))
    return None
