"""Processes that are measured: what they and their children use, and how they are ended, each by its own id."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import psutil

from penstock.bench.measure import Sample
from penstock.engine.broker import end_with_us

OUTPUT = "output.log"
"""What a process prints, in its folder."""
_STOP_SECONDS = 20.0
_TICK_SECONDS = 0.1
_LOG_CHARACTERS = 1_500


def family(root: int) -> list[psutil.Process]:
    """The process `root` with all that descend from it; none after it has ended."""
    try:
        process = psutil.Process(root)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that have not ended. Another process that later has the same number is not taken for one of them."""
    return [one for one in processes if one.is_running() and not _is_zombie(one)]


def _is_zombie(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _used(process: psutil.Process) -> tuple[float, int]:
    """Seconds of CPU, with those of its children that have ended, and bytes of memory; nothing if it has just ended."""
    try:
        with process.oneshot():
            cpu = process.cpu_times()
            return cpu.user + cpu.system + cpu.children_user + cpu.children_system, process.memory_info().rss
    except psutil.NoSuchProcess:
        return 0.0, 0


class Measured:
    """A process under measurement, from its start until `stop`. It never outlives the process that started it."""

    def __init__(
        self, command: Sequence[str], environ: Mapping[str, str], folder: Path, every_seconds: float = 1.0
    ) -> None:
        self._log = folder / OUTPUT
        self._every_seconds = every_seconds
        self._seen: set[psutil.Process] = set()
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
        _signal(family(self.pid), signal.SIGSTOP)

    def go_on(self) -> None:
        if self._held:
            _signal(family(self.pid), signal.SIGCONT)
            self._held = False
            self._look()

    def kill(self) -> None:
        """Ends it and its children as a power cut does."""
        self._end_samples()
        self.killed_at = time.time_ns() // 1_000
        self._process.kill()
        _signal(alive(self._seen), signal.SIGKILL)
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
        _signal(alive(self._seen), signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        while (left := alive(self._seen)) and time.monotonic() < deadline:
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
        found = family(self._process.pid)
        self._seen.update(found)
        used = [_used(one) for one in found]
        if memory := sum(memory for _, memory in used):  # a process that has ended and is not waited for holds none
            self.samples.append(Sample(now, sum(cpu for cpu, _ in used), memory))


def _signal(processes: Sequence[psutil.Process], number: signal.Signals) -> None:
    for one in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.send_signal(number)


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
