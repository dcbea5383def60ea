"""Measures workloads with several contenders in one run, on a broker of its own."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from penstock.bench.contenders.contender import Contender
from penstock.bench.contenders.every_contender import CONTENDERS, FLOOR, OURS
from penstock.bench.entrant import BESIDE_SECONDS
from penstock.bench.report import plot
from penstock.bench.results import Run, Summary, summary
from penstock.bench.rounds import run_workload, starts_anew
from penstock.bench.turn import NOBODY, Options, Watching
from penstock.bench.workloads.every_workload import USUAL, WORKLOADS
from penstock.bench.workloads.workload import Workload
from penstock.engine.broker import Broker
from penstock.engine.session import installed_version
from penstock.problems import Problem, UserError, did_you_mean
from penstock.version import VERSION

RESULTS = "results.json"
_START_SECONDS = 20.0
_WAITING_A_SECOND = 10_000
_DRAINED_A_SECOND = 40_000
_Part = TypeVar("_Part", Workload, Contender)
Skipped = tuple[str, str]
"""The name of a contender, and why it takes no part."""


@dataclass(frozen=True)
class BenchResult:
    """Every run, and each workload summed up."""

    options: Options
    machine: dict[str, Any]
    runs: tuple[Run, ...]
    summaries: tuple[Summary, ...]
    files: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every run counted."""
        return all(run.problem is None for run in self.runs)

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "machine": self.machine,
            "options": asdict(self.options),
            "workloads": [one.to_json() for one in self.summaries],
            "runs": [asdict(run) for run in self.runs],
            "files": list(self.files),
        }


def bench(
    workloads: Sequence[str],
    contenders: Sequence[str],
    options: Options,
    folder: Path | None = None,
    watching: Watching = NOBODY,
) -> BenchResult:
    """Runs the named workloads, or the usual ones; writes JSON and plots into the folder, if one is given.

    UserError BENCH001 for an unknown workload, BENCH002 for a contender, BENCH003 for the folder, and what `Broker`
    raises. A contender that cannot be had is left out, and the result says why.
    """
    chosen = _chosen(workloads, WORKLOADS, "BENCH001", "workload") if workloads else list(USUAL)
    asked = _chosen(contenders, CONTENDERS, "BENCH002", "contender")
    if folder is not None:
        _make_folder(folder)
    able, unable = _prepared(asked)
    plans = [_plan(workload, able, unable) for workload in chosen]
    expected = sum(len(taking_part) * _seconds_of(workload, options) for workload, taking_part, _ in plans)
    watching.on_plan(sum(len(taking_part) for _, taking_part, _ in plans) * options.rounds, expected)
    runs: list[Run] = []
    summaries: list[Summary] = []
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as place,
        Broker(Path(place), auto_create_topics=False) as broker,
    ):
        for workload, taking_part, skipped in plans:
            found = run_workload(workload, taking_part, broker.servers, options, watching)
            runs += found
            summaries.append(
                summary(workload.name, workload.title, found, FLOOR.name, [one.name for one in OURS], skipped)
            )
            watching.on_summary(summaries[-1])
    result = BenchResult(options, _machine(), tuple(runs), tuple(summaries))
    return _written(result, folder) if folder is not None else result


def _chosen(names: Sequence[str], known: Sequence[_Part], code: str, noun: str) -> list[_Part]:
    by_name = {part.name: part for part in known}
    problems = [
        Problem(code, f"there is no {noun} `{name}`{did_you_mean(name, by_name)}", f"use one of: {', '.join(by_name)}")
        for name in names
        if name not in by_name
    ]
    if problems:
        raise UserError(problems)
    return [part for part in known if not names or part.name in names]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"results cannot be written to `{folder}`: {error.strerror}"
        raise UserError(Problem("BENCH003", message, "choose a folder that this user may write to")) from error


def _prepared(contenders: Iterable[Contender]) -> tuple[list[Contender], list[Skipped]]:
    """Those that have what they need, and those that cannot have it."""
    able, unable = [], []
    for contender in contenders:
        try:
            contender.prepare()
            able.append(contender)
        except UserError as error:
            unable.append((contender.name, "; ".join(problem.message for problem in error.problems)))
    return able, unable


def _plan(
    workload: Workload, able: Iterable[Contender], unable: Iterable[Skipped]
) -> tuple[Workload, list[Contender], list[Skipped]]:
    reasons = [(contender, contender.cannot(workload)) for contender in able]
    skipped = [(contender.name, reason) for contender, reason in reasons if reason]
    return workload, [contender for contender, reason in reasons if not reason], [*unable, *skipped]


def _seconds_of(workload: Workload, options: Options) -> float:
    """A guess, for people who wait: starts of a JVM, what waits for each, and the time that was asked for."""
    begun = options.rounds if starts_anew(workload) else min(options.starts, options.rounds)
    if workload.drains:
        return begun * (_START_SECONDS + options.records / _DRAINED_A_SECOND)
    waiting = workload.backlog / _WAITING_A_SECOND
    laps = options.rounds * (BESIDE_SECONDS + options.seconds)
    return begun * (_START_SECONDS + waiting + options.warm_seconds) + laps


def _machine() -> dict[str, Any]:
    """What a figure depends on, beside the code."""
    return {
        "penstock": VERSION,
        "spark": installed_version(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


def _written(result: BenchResult, folder: Path) -> BenchResult:
    pictures = {f"{one.workload}.svg": picture for one in result.summaries if (picture := plot(one))}
    written = replace(result, files=tuple(str(folder / name) for name in (RESULTS, *pictures)))
    texts = {RESULTS: json.dumps(written.to_json(), indent=2) + "\n", **pictures}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return written
