"""One replay of a pipeline at a time: two could send the same letters."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.problems import Problem, UserError


@contextmanager
def alone(folder: Path, pipeline: str) -> Iterator[None]:
    """Holds the lock of a pipeline's replays, in the folder of its locks. Raises UserError."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{pipeline}.replay.lock").open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UserError(
                Problem("DEADLETTER008", f"another replay of `{pipeline}` is under way", "wait for its end")
            ) from None
        yield
