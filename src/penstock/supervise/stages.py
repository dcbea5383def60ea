"""Queries that feed each other, one after the other: each finds what those before it have just written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from penstock.engine.session import Engine
from penstock.graph.project_graph import NodeName
from penstock.prepare.judging import Judged
from penstock.prepare.ready import Ready, made_for_readers
from penstock.problems import Problem, UserError, errors_in
from penstock.query.triggers import Trigger
from penstock.supervise.query_view import QueryView, Snapshot
from penstock.supervise.starting import start_all
from penstock.supervise.stopping import Stop
from penstock.supervise.supervisor import Listeners, Supervisor


def in_stages(judged: Judged, ready: Sequence[Ready]) -> list[list[Ready]]:
    """Queries in the order of what feeds what; all at once where nothing does."""
    by_node = {item.node: item for item in ready}
    return [[by_node[node] for node in stage] for stage in judged.graph.stages(by_node)]


@dataclass
class StagedRun:
    """Runs stages until all have ended. A query is skipped where one that feeds it has failed."""

    engine: Engine
    judged: Judged
    trigger: Trigger | None
    cleanup: ExitStack
    stop: Stop
    listeners: Listeners
    for_seconds: float | None = None
    problems: list[Problem] = field(default_factory=list)
    """What went wrong beside the queries."""
    _done: tuple[QueryView, ...] = ()
    _lost: dict[NodeName, NodeName] = field(default_factory=dict)
    """Queries that did not get to their end, each with the one that failed first."""

    def run(self, stages: Sequence[Sequence[Ready]]) -> Snapshot:
        """Raises UserError if the first stage cannot start: nothing is written then."""
        began = time.monotonic()
        for number, stage in enumerate(stages):
            elapsed = time.monotonic() - began
            is_over = self.for_seconds is not None and elapsed >= self.for_seconds
            if number and (self.stop.asked or is_over):
                self.problems += [_not_begun(item) for item in stage]
                continue
            going = [item for item in stage if not self._skips(item)]
            try:
                self._run_stage(number, going, began)
            except UserError as error:
                if number == 0:
                    raise
                self.problems += error.problems
                self._lost |= {item.node: item.node for item in going}
        return Snapshot(time.monotonic() - began, self._done, self.stop.asked)

    def _run_stage(self, number: int, going: list[Ready], began: float) -> None:
        if not going:
            return
        if number:  # what feeds them has written by now: files are listed, and columns found, only now
            fed = [replace(one, waits=one.waits or bool(self.judged.graph.joints_into(one.node))) for one in going]
        else:
            fed = going
        ready, refusals = made_for_readers(self.engine, self.judged, fed, self.trigger)
        if errors_in(refusals):
            raise UserError(refusals)
        running = start_all(
            self.engine, self.judged.project, ready, self.judged.disks, self.trigger, self.cleanup, is_locked=True
        )
        left = None if self.for_seconds is None else max(0.0, self.for_seconds - (time.monotonic() - began))
        supervisor = Supervisor(running, self.stop, self._with_the_done(began), left)
        last = supervisor.run()
        self.problems += supervisor.problems
        self._done += last.queries
        unfinished = [(view.pipeline, view.name) for view in last.queries if view.state != "done"]
        self._lost |= {node: node for node in unfinished}

    def _skips(self, item: Ready) -> bool:
        """Has a query failed that feeds it? Then it is skipped, and so is all that it feeds."""
        for joint in self.judged.graph.joints_into(item.node):
            if joint.writer in self._lost and joint.writer != item.node:
                first = self._lost[joint.writer]
                self._lost[item.node] = first
                self.problems.append(
                    Problem(
                        "RUN005",
                        f"`{'.'.join(item.node)}` was skipped: `{'.'.join(first)}`, which feeds it, has failed",
                        f"fix what is reported for `{'.'.join(first)}`, and run again: both resume without loss",
                        joint.source.origin.where,
                        "warning",
                    )
                )
                return True
        return False

    def _with_the_done(self, began: float) -> Listeners:
        """Who hears of a stage hears of those before it too."""
        done = self._done

        def with_done(snapshot: Snapshot) -> Snapshot:
            return replace(snapshot, elapsed_seconds=time.monotonic() - began, queries=(*done, *snapshot.queries))

        on_snapshot = tuple(
            (lambda snapshot, show=show: show(with_done(snapshot))) for show in self.listeners.on_snapshot
        )
        return replace(self.listeners, on_snapshot=on_snapshot)


def _not_begun(item: Ready) -> Problem:
    return Problem(
        "RUN006",
        f"`{'.'.join(item.node)}` was not run: the run was stopped before its turn",
        "run the same command again: the query reads what those before it have written",
        item.built.query.origin.where,
        "warning",
    )
