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
    nodes = [node for pipeline in judged.resolved for node in (*pipeline.sources, *pipeline.sinks)]
    with ThreadPoolExecutor(max_workers=8) as threads:
        found = [problem for problem in threads.map(_probed, nodes) if problem]
    return resolve.masked(dict.fromkeys(found), judged.project, os.environ)


def _probed(node: Source | Sink) -> Problem | None:
    try:
        node.spec.probe()
    except Fault as fault:
        return fault.at(node.origin.at(*fault.keys))
    return None
