"""Processes that are measured: what they and their children use, and how they are ended, each by its own id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.bench.measure import Sample
from penstock.engine.broker import end_with_us

OUTPUT = "output.log"
"""What a process prints, in its folder."""
_PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_STOP_SECONDS = 20.0
_TICK_SECONDS = 0.1
_LOG_CHARACTERS = 1_500


@dataclass(frozen=True)
class Stat:
    """One process, as the kernel tells of it."""

    pid: int
    parent: int
    cpu_seconds: float
    """With that of its children that have ended."""
    memory_bytes: int
    started: int
    """Tells it from another one that later has the same number."""


def parse_stat(text: str) -> Stat:
    """From the text of `/proc/<pid>/stat`. A program's name may hold spaces and brackets."""
    pid, _, rest = text.partition(" (")
    words = rest.rpartition(") ")[2].split()
    return Stat(
        pid=int(pid),
        parent=int(words[1]),
        cpu_seconds=sum(map(int, words[11:15])) / _TICKS,
        memory_bytes=int(words[21]) * _PAGE,
        started=int(words[19]),
    )


def tree(root: int, stats: Sequence[Stat]) -> list[Stat]:
    """The process `root` with all that descend from it."""
    children: dict[int, list[Stat]] = {}
    for one in stats:
        children.setdefault(one.parent, []).append(one)
    found = [one for one in stats if one.pid == root]
    for one in found:  # grows while it is walked
        found += children.get(one.pid, [])
    return found


def all_stats() -> list[Stat]:
    """Every process of this machine that can be seen."""
    stats = []
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):  # it has just ended
                stats.append(parse_stat((folder / "stat").read_text(encoding="utf-8", errors="replace")))
    return stats


class Measured:
    """A process under measurement, from its start until `stop`. It never outlives the process that started it."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], folder: Path, every_seconds: float = 1.0
    ) -> None:
        self._log = folder / OUTPUT
        self._every_seconds = every_seconds
        self._seen: dict[int, Stat] = {}
        self._ended = threading.Event()
        self._held = False
        self.samples: list[Sample] = []
        self.started_at = time.time_ns() // 1_000
        self.killed_at: int | None = None
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard = end_with_us(self._process.pid)
        self._sampler = threading.Thread(target=self._sample, daemon=True, name="samples")
        self._sampler.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    @property
    def peak_memory_bytes(self) -> int:
        return max((sample.memory_bytes for sample in self.samples), default=0)

    def said(self) -> str:
        """The end of what it printed."""
        return self._log.read_text(encoding="utf-8", errors="replace").strip()[-_LOG_CHARACTERS:]

    def hold(self) -> None:
        """Stops the clock for it and its children: they use nothing until `go_on`."""
        self._look()
        self._held = True
        _signal(tree(self.pid, all_stats()), signal.SIGSTOP)

    def go_on(self) -> None:
        if self._held:
            _signal(tree(self.pid, all_stats()), signal.SIGCONT)
            self._held = False
            self._look()

    def kill(self) -> None:
        """Ends it and its children as a power cut does."""
        self._end_samples()
        self.killed_at = time.time_ns() // 1_000
        self._process.kill()
        _signal(self._left(), signal.SIGKILL)
        self._forget()

    def stop(self) -> None:
        """Asks it to end, and ends what is left of it and its children after a while."""
        self.go_on()
        self._end_samples()
        try:
            self._process.terminate()
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._forget()
        _signal(self._left(), signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(_TICK_SECONDS)
        _signal(left, signal.SIGKILL)

    def _end_samples(self) -> None:
        self._ended.set()
        self._sampler.join()
        self._look()

    def _forget(self) -> None:
        """Its number may soon be another's: the guard must not use it."""
        self._process.wait()
        self._guard.kill()
        self._guard.communicate()

    def _sample(self) -> None:
        while not self._ended.is_set():
            if not self._held:
                self._look()
            self._ended.wait(self._every_seconds)

    def _look(self) -> None:
        now = time.time_ns() // 1_000
        if alive := tree(self._process.pid, all_stats()):
            self._seen |= {one.pid: one for one in alive}
            cpu, memory = sum(one.cpu_seconds for one in alive), sum(one.memory_bytes for one in alive)
            if memory:  # a process that has ended and is not waited for holds none
                self.samples.append(Sample(now, cpu, memory))

    def _left(self) -> list[Stat]:
        known = {(one.pid, one.started) for one in self._seen.values()}
        return [one for one in all_stats() if (one.pid, one.started) in known and one.memory_bytes]


def _signal(processes: Sequence[Stat], number: signal.Signals) -> None:
    for one in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, number)


@contextlib.contextmanager
def helper(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """A process of ours that is spoken with through pipes; it is killed when the block or this process ends."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
    ) as process:
        guard = end_with_us(process.pid)
        try:
            yield process
        finally:
            guard.kill()
            guard.communicate()
            process.kill()
