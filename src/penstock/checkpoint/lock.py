"""One process per pipeline: a lock on a local disk, held by the JVM.

The JVM outlives a killed Python by a second or two and still writes, so a lock that Python held would be gone too
early. A lock on one machine cannot see another machine: two machines on one storage are not kept apart by it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError

from penstock.problems import Problem, UserError


@contextmanager
def held(jvm: Any, folder: Path, pipeline: str) -> Iterator[None]:
    """Holds a pipeline's lock. Raises UserError when another process has it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{pipeline}.lock"
    handle = jvm.java.io.RandomAccessFile(str(file), "rw")
    lock = _try_lock(handle)
    if lock is None:
        handle.close()
        raise UserError(_taken(pipeline, _holder(file)))
    # The holder's id stands in a file of its own: a locked file cannot be read everywhere.
    file.with_suffix(".pid").write_text(str(os.getpid()), encoding="utf-8")
    try:
        yield
    finally:
        with suppress(Py4JError, OSError):  # a JVM that has died holds no lock any more
            lock.release()
            handle.close()


def require_free(folder: Path, pipeline: str) -> None:
    """Raises UserError when another process runs the pipeline: known at once, before Spark is started."""
    try:
        import fcntl
    except ImportError:  # Windows: the JVM will tell
        return
    file = folder / f"{pipeline}.lock"
    if not os.access(file, os.R_OK | os.W_OK):
        return
    with file.open("r+b") as probe:
        try:
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of the kind that Java takes
        except OSError:
            raise UserError(_taken(pipeline, _holder(file))) from None


def _try_lock(handle: Any) -> Any:
    try:
        return handle.getChannel().tryLock()
    except Py4JJavaError:  # OverlappingFileLockException: this very process holds it
        return None


def _holder(file: Path) -> str:
    try:
        return f"process {file.with_suffix('.pid').read_text(encoding='utf-8')}"
    except OSError:
        return "another process"


def _taken(pipeline: str, holder: str) -> Problem:
    return Problem("CHECKPOINT003", f"the pipeline `{pipeline}` is being run by {holder}",
                   "stop that one first; two runs on one checkpoint would spoil it")  # fmt: skip
