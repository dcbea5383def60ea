"""The command in a process of its own, with a JVM of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).with_name("penstock")
# A JVM that lives for seconds is done before its second compiler pays.
QUICK_JAVA = os.environ | {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}


@pytest.fixture(scope="session")
def penstock_json() -> Callable[..., dict[str, Any]]:
    """What a command says with `--json`."""

    def call(root: Path, *arguments: str) -> dict[str, Any]:
        command = [COMMAND, *arguments, "--project", root, "--json"]
        ended = subprocess.run(command, env=QUICK_JAVA, capture_output=True, text=True, timeout=900, check=False)
        assert ended.stdout.startswith("{"), ended.stderr
        return dict(json.loads(ended.stdout))

    return call
