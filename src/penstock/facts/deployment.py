"""Where a project runs: which master, and which folders of the driver's machine the others can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Deployment:
    """What is known of it. What hangs on a variable that is not set is left out."""

    master: str = "local[*]"
    file_system: str = "file:///"
    """Where Spark looks for a path without a scheme: `fs.defaultFS`."""
    storage: str | None = None
    """Where checkpoints are kept, absolute."""
    shared: tuple[tuple[int, str], ...] = ()
    """The folders that `shared_paths` declares, absolute, each with its number in the list."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The settings of the process, those of the project's catalogs included."""
