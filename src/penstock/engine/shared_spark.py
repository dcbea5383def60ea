"""One Spark for all that a Python process does with pipelines."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.engine import session
from penstock.engine.session import Engine, attach, running


@dataclass(frozen=True)
class Needs:
    """What a Spark is started with."""

    name: str
    folder: Path
    settings: Mapping[str, str]
    connectors: frozenset[str]

    def start(self) -> Engine:
        return session.start(self.name, self.settings, self.folder, self.connectors)

    def are_met_by(self, other: Needs) -> bool:
        same = (self.name, self.folder, self.settings) == (other.name, other.folder, other.settings)
        return same and self.connectors <= other.connectors


class _Shared:
    """A Spark that several users in one process have: handles that run, and calls that only look.

    It ends with the last handle. What only looks keeps it for the next one that needs no other.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.engine: Engine | None = None
        self.needs: Needs | None = None

    @contextlib.contextmanager
    def use(self, needs: Needs, *, keep: bool = False) -> Iterator[Engine]:
        """The Spark of this process, started if there is none. One that somebody else started is not ended here.

        One that was kept stays where the block raises: a start that was refused has not used it.
        """
        with self.lock:
            if self.engine is not None and not self.users and not self._can_go_on_for(needs):
                self._close()
            was_kept = self.engine is not None and not self.users
            others = running() if self.engine is None else None
            if others is None:
                if self.engine is None:
                    self.engine, self.needs = needs.start(), needs
                self.users += 1
            engine = attach(others) if others else self.engine
        try:
            yield engine  # type: ignore[misc] # one of the two is there
        except BaseException:
            keep = keep or was_kept
            raise
        finally:
            with self.lock:
                self.users -= engine is self.engine
                if engine is self.engine and engine and not self.users and not keep:
                    self._close()

    def _can_go_on_for(self, needs: Needs) -> bool:
        jvm = self.engine.jvm if self.engine else None
        lives = jvm is not None and jvm.process.poll() is None
        return lives and self.needs is not None and needs.are_met_by(self.needs)

    def _close(self) -> None:
        engine, self.engine, self.needs = self.engine, None, None
        if engine is not None:
            engine.close()


shared = _Shared()
