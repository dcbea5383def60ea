"""One process per pipeline: a lock on a local disk, held by the JVM.

The JVM outlives a killed Python by a second or two and still writes, so a lock that Python held would be gone too
early. A lock on one machine cannot see another machine: two machines on one storage are not kept apart by it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.engine import resolve
from penstock.notation.paths import is_local, to_local
from penstock.pipeline.project import Project
from penstock.problems import Problem, UserError
from penstock.spark_internals import JvmError, lock_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LAST_BREATH_SECONDS = 10.0


@contextmanager
def held(spark: SparkSession, folder: Path, pipeline: str) -> Iterator[None]:
    """Holds a pipeline's lock. Raises UserError when another process has it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{pipeline}.lock"
    unlock = lock_file(spark, str(file))
    if unlock is None:
        raise UserError(_taken(pipeline, _holder(file)))
    # The holder's id stands in a file of its own: a locked file cannot be read everywhere.
    file.with_suffix(".pid").write_text(str(os.getpid()), encoding="utf-8")
    try:
        yield
    finally:
        with suppress(JvmError, OSError):  # a JVM that has died holds no lock any more
            unlock()


@contextmanager
def held_without_spark(folder: Path, pipeline: str) -> Iterator[None]:
    """Holds a pipeline's lock for a command that starts no JVM. Raises UserError when another process has it."""
    require_free(folder, pipeline)
    try:
        import fcntl
    except ImportError:  # Windows: nobody had it a moment ago
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{pipeline}.lock"
    with file.open("a+b") as handle:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(_taken(pipeline, _holder(file))) from None
        file.with_suffix(".pid").write_text(str(os.getpid()), encoding="utf-8")
        yield


def require_free(folder: Path, pipeline: str) -> None:
    """Raises UserError when another process runs the pipeline: known at once, before Spark is started.

    After a kill -9 the JVM lives on for a moment and holds the lock; that moment is waited for.
    """
    file = folder / f"{pipeline}.lock"
    deadline = time.monotonic() + _LAST_BREATH_SECONDS
    while _is_held(file):
        if _is_alive(_pid(file)) or time.monotonic() > deadline:
            raise UserError(_taken(pipeline, _holder(file)))
        time.sleep(0.1)


def lock_folder(project: Project) -> Path:
    """Beside the checkpoints, where every project that uses them sees it; a remote storage is locked per project."""
    root = resolve.storage_root(project, os.environ)
    return to_local(root) / "locks" if is_local(root) else project.local_folder / "locks"


def _is_held(file: Path) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows: the JVM will tell
        return False
    if not os.access(file, os.R_OK | os.W_OK):
        return False
    with file.open("r+b") as probe:
        try:
            fcntl.lockf(probe, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of the kind that Java takes
        except OSError:
            return True
    return False


def _pid(file: Path) -> int | None:
    try:
        return int(file.with_suffix(".pid").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _is_alive(pid: int | None) -> bool:
    if pid is None:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # somebody else's
    return True


def _holder(file: Path) -> str:
    pid = _pid(file)
    return f"process {pid}" if pid else "another process"


def _taken(pipeline: str, holder: str) -> Problem:
    return Problem("CHECKPOINT003", f"the pipeline `{pipeline}` is being run by {holder}",
                   "stop that one first; two runs on one checkpoint would spoil it")  # fmt: skip
