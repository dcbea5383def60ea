"""What is kept between commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.cache import Remembered

CODE = """
import sys
from penstock.transforms.sql import tables_in
assert tables_in("SELECT a FROM b JOIN c USING (d)") == ("b", "c")
print("sqlglot" in sys.modules)
"""


def asked(cache: Path) -> str:
    environ = {"PENSTOCK_CACHE": str(cache), "PATH": "/usr/bin:/bin"}
    return subprocess.check_output([sys.executable, "-c", CODE], env=environ, text=True).strip()


def test_a_text_is_parsed_once_for_all_commands(tmp_path):
    assert [asked(tmp_path), asked(tmp_path)] == ["True", "False"]


def test_a_garbled_or_forbidden_cache_costs_time_only(tmp_path):
    asked(tmp_path)
    (file,) = tmp_path.glob("sql-*.json")
    file.write_text("{not json")
    assert asked(tmp_path) == "True"
    (tmp_path / "file").write_text("")
    assert asked(tmp_path / "file") == "True"


def test_only_the_newest_are_kept(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    memory = Remembered("words", most=2)
    for word in ("a", "b", "c"):
        memory.put(word, [word])
    memory._write()
    again = Remembered("words")
    assert [again.get(word) for word in ("a", "b", "c")] == [None, ["b"], ["c"]]
