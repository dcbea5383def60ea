"""What Spark has to be started with: connectors and settings of the process."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.checks.rule import installed_spark
from penstock.engine import latency, resolve
from penstock.pipeline.project import Project
from penstock.prepare.judging import Judged

if TYPE_CHECKING:  # a fast check does not pay for it
    from penstock.engine.session import Engine

StartEngine = Callable[[Project, tuple[str, ...], dict[str, str]], "Engine"]
"""Starts Spark for a project, with connectors and settings; the caller closes it."""


def needs_of(judged: Judged, *, with_upstream: bool = False) -> tuple[tuple[str, ...], dict[str, str]]:
    """The connectors and the settings that a process for these pipelines starts with; with all that feeds them."""
    from penstock.engine.build import connectors_of

    pipelines = (*judged.resolved, *(judged.feeding if with_upstream else ()))
    catalogs = {name for catalog in judged.project.catalogs.values() for name in catalog.connectors}
    connections = {
        name
        for pipeline in pipelines
        for node in (*pipeline.sources, *pipeline.sinks)
        if (used := getattr(node.spec, "connection", None))
        for name in judged.project.connections[used].connectors
    }
    quick = {"local-fs"} if latency.wants_quick_files(judged.resolved) else set()
    connectors = tuple(sorted({*connectors_of(pipelines), *catalogs, *connections, *quick}))
    of_process = latency.process_settings(judged.resolved, installed_spark())
    return connectors, of_process | resolve.project_settings(judged.project, os.environ)
