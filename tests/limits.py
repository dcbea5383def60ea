"""The limits of the suite itself, asserted at the end of a run: processes started, and CPU time per directory.

CPU time and not time on the clock: a machine that is busy with something else makes every test last longer, and hardly
makes one compute more. Raise a limit only on purpose, in the change that needs it. `make proof` has no limits.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

PROCESS_FILES = (
    "tests/cli/test_crash_points.py",
    "tests/judge/test_judge.py",
    "tests/engine/test_lakes.py",
    "tests/cli/test_processes.py",
    "tests/engine/test_remote_storage.py",
    "tests/engine/test_cluster.py",
    "tests/engine/test_jvm_archive.py",
    "tests/cli/test_dev.py",
    "tests/cli/test_notebook.py",
)
"""Tests that start `penstock`, or Spark, in a process of their own. One worker runs them all, one at a time."""

MOST_STARTS = {"penstock": 42, "java": 46, "spark-submit": 10, "judge": 1}
"""Processes that all workers may start in a run: commands, JVMs without Spark, Sparks of the workers, the judge."""

CPU_SECONDS = {
    "actions": 270,
    "bench": 130,
    "checkpoint": 130,
    "checks": 20,
    "cli": 550,
    "connections": 30,
    "contracts": 20,
    "edits": 220,
    "engine": 600,
    "faults": 100,
    "formats": 100,
    "judge": 250,
    "metrics": 10,
    "models": 150,
    "operations": 320,
    "pipeline": 30,
    "plan": 10,
    "prepare": 110,
    "processors": 130,
    "sinks": 700,
    "sources": 450,
    "supervise": 420,
    "testing": 20,
    "transforms": 200,
    ".": 460,
}
"""By directory of tests/, what its tests may compute: about twice what they do. `.` has the tests beside them.

The first test of a worker that needs Spark or the broker pays for its start, whatever directory it is in.
"""

_starts: Counter[str] = Counter()
_spent: dict[str, float] = defaultdict(float)
_lasted: dict[str, float] = defaultdict(float)
_file_of_test: list[str] = [""]
_limited: list[bool] = []
"""Holds something where this run is the suite."""


def directory_of(nodeid: str) -> str:
    parts = Path(nodeid.partition("::")[0]).parts
    return parts[1] if len(parts) > 2 else "."


def kind_of(command: list[str]) -> str | None:
    """What a command starts, if that is counted."""
    name = Path(command[0]).name
    if "-version" in command:
        return None
    module = command[2] if command[1:2] == ["-m"] else ""
    if name == "penstock" or module in ("penstock", "penstock.actions.record_archive"):
        return "penstock"
    if name in ("java", "spark-submit", "spark-class"):
        return "java" if name == "java" else "spark-submit"
    return "judge" if "tests.judge" in command else None


def over_the_limits(starts: Counter[str], spent: dict[str, float]) -> list[str]:
    """Which limits were not kept, in words."""
    many = [
        f"{count} starts of {kind}, and at most {MOST_STARTS[kind]} are allowed"
        for kind, count in sorted(starts.items())
        if count > MOST_STARTS[kind]
    ]
    long = [
        f"tests/{name} computed for {seconds:.0f} s, and its budget is {CPU_SECONDS.get(name, 0)} s"
        for name, seconds in sorted(spent.items())
        if seconds > CPU_SECONDS.get(name, 0)
    ]
    return [*many, *long]


def _count(event: str, given: tuple[Any, ...]) -> None:
    if event != "subprocess.Popen":
        return
    command = [str(part) for part in given[1]] if isinstance(given[1], list | tuple) else [str(given[1])]
    kind = kind_of(command)
    if kind is None:
        return
    _starts[kind] += 1
    if kind == "penstock" and _limited and _file_of_test[0] and _file_of_test[0] not in PROCESS_FILES:
        raise AssertionError(f"{_file_of_test[0]} starts penstock: name it in PROCESS_FILES of tests/limits.py")


def _cpu_seconds() -> float:
    """Of this process, of those that it waits for, and of those that run: Spark and the broker."""
    me = psutil.Process()
    total = sum(me.cpu_times()[:4])
    for child in me.children(recursive=True):
        try:
            total += sum(child.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


def pytest_configure(config: pytest.Config) -> None:
    if _is_limited(config):
        _limited.append(True)
    sys.addaudithook(_count)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _file_of_test[0] = item.nodeid.partition("::")[0]
    item.stash[_BEFORE] = _cpu_seconds()
    return (yield)


_BEFORE = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[Any]:
    report = yield
    if report.when == "teardown":
        report.user_properties.append(("cpu_seconds", max(0.0, _cpu_seconds() - item.stash[_BEFORE])))
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """In a run with workers, the one that collects gets all reports; a worker looks at its own for nothing."""
    name = directory_of(report.nodeid)
    _lasted[name] += report.duration
    if report.when == "teardown":
        _spent[name] += dict(report.user_properties).get("cpu_seconds", 0.0)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["starts"] = dict(_starts)
    elif _is_limited(session.config) and over_the_limits(_starts, _spent):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _starts.update(getattr(node, "workeroutput", {}).get("starts", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    write = terminalreporter.write_line
    terminalreporter.section("limits of the suite")
    write("starts: " + (", ".join(f"{kind} {count}" for kind, count in sorted(_starts.items())) or "none"))
    write("directory      CPU s  budget  clock s")
    for name in sorted(_lasted, key=lambda name: -_spent[name]):
        write(f"{name:<13}{_spent[name]:>7.1f}{CPU_SECONDS.get(name, 0):>8}{_lasted[name]:>9.1f}")
    if _is_limited(config):
        for told in over_the_limits(_starts, _spent):
            write(f"FAILED {told}", red=True)


def _is_limited(config: pytest.Config) -> bool:
    """`make proof`, or a selection by mark, is not the suite."""
    return config.option.markexpr == "not proof"
