"""Asks services outside of Spark whether they can be reached, while a query makes no progress.

Spark's clients retry for a minute and more before a query fails. A connection of our own gives the answer in seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from penstock.problems import Fault, Problem
from penstock.supervise.events import Side

SILENT_SECONDS = 3.0
"""A batch that lasts longer without a report is a reason to ask."""
_ASK_SECONDS = 5.0
_ASK_AGAIN_SECONDS = 1.0
_AWAY = frozenset({"KAFKA001", "POSTGRES001", "HTTP001", "HTTP002"})
"""The codes that say: it cannot be reached. Others, such as a refused login, do not pass by themselves."""
_threads = ThreadPoolExecutor(max_workers=8, thread_name_prefix="absence")


def says_away(problem: Problem) -> bool:
    """Does a Problem say that a service cannot be reached?"""
    return problem.code in _AWAY


@dataclass(frozen=True)
class Service:
    """A source or a sink that can be asked."""

    node: str
    side: Side
    probe: Callable[[], None]
    """Raises Fault if it cannot be reached."""
    problem: Callable[[Fault], Problem]
    """The Fault as a Problem at the user's line, without secrets."""


def asked(service: Service) -> Problem | None:
    """Why a service cannot be reached; None if it can, or if it says something else."""
    try:
        service.probe()
    except Fault as fault:
        problem = service.problem(fault)
        return problem if says_away(problem) else None
    return None


class Absence:
    """Which services of one query are away, asked in threads: the run does not wait for the answers."""

    def __init__(self, services: tuple[Service, ...]) -> None:
        self.services = services
        self.away: Mapping[str, Problem] = {}
        self._asking: dict[str, Future[Problem | None]] = {}
        self._asked_at = 0.0

    def look(self, *, worried: bool) -> list[tuple[Service, Problem | None]]:
        """What has changed since the last look: a service with its Problem is away, one without is back."""
        changed = []
        if self._asking and all(answer.done() for answer in self._asking.values()):
            answers = {node: answer.result() for node, answer in self._asking.items()}
            self._asking = {}
            now = {node: problem for node, problem in answers.items() if problem}
            for service in self.services:
                if (service.node in now) != (service.node in self.away):
                    changed.append((service, now.get(service.node)))
            self.away = now
        interval = _ASK_AGAIN_SECONDS if self.away else _ASK_SECONDS
        due = time.monotonic() - self._asked_at >= interval
        if self.services and (worried or self.away) and due and not self._asking:
            self._asked_at = time.monotonic()
            self._asking = {service.node: _threads.submit(asked, service) for service in self.services}
        return changed

    @property
    def is_asking(self) -> bool:
        return bool(self._asking)
