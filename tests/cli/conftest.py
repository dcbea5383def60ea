"""The command, called as a shell calls it, in this process."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def codes(self) -> list[str]:
        return [problem["code"] for problem in self.json["problems"]]


@pytest.fixture
def penstock(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    def call(*arguments: str | Path, at: Path | None = None) -> Ended:
        monkeypatch.setattr(sys, "argv", ["penstock", *map(str, arguments)])
        if at is not None:
            monkeypatch.chdir(at)
        with pytest.raises(SystemExit) as ended:
            main()
        gc.enable()
        told = capsys.readouterr()
        return Ended(int(ended.value.code or 0), told.out, told.err)

    return call


@pytest.fixture
def on_shared_spark(monkeypatch: pytest.MonkeyPatch, start_engine: Any) -> None:
    """Commands that start Spark get the one of the test run."""
    monkeypatch.setattr("penstock.engine.session.start", lambda *given, **more: start_engine(None, (), {}))
