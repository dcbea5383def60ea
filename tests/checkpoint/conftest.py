"""What the tests of checkpoints share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.engine.session import Engine
from tests.checkpoint.recorded import Recorded, record


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Recorded:
    """Never changed: each test takes a copy."""
    root = tmp_path_factory.mktemp("recorded")
    shared = replace(engine, jvm=None)
    return record(root / "project", root / "data", lambda project, connectors, settings: shared)
