"""Every mistake gives one Problem at its place, exit code 1, and nothing is written."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

import pytest

GOOD = """\
pipeline: shop
sources:
  orders:
    type: files
    path: data/in
    format: {type: json, schema: "id BIGINT, amount DOUBLE"}
steps:
  big:
    sql: |
      SELECT id,
             amount
      FROM orders
      WHERE amount > 10
sinks:
  out: {of: big, type: files, path: data/out, format: parquet}
"""


class Bad(NamedTuple):
    what: str
    old: str
    new: str
    code: str
    line: int
    column: int | None = None


TEXT_ALONE = [
    Bad("unknown key", "    path: data/in", "    pth: data/in", "SPEC007", 5, 5),
    Bad("wrong type", "path: data/in", "path: [data/in]", "SPEC009", 5, 11),
    Bad("missing key", "    path: data/in\n", "", "SPEC008", 4),
    Bad("tab", "    type: files", "\ttype: files", "SPEC005", 4, 1),
    Bad("duplicate key", "    path: data/in", "    path: data/in\n    path: data/in", "SPEC004", 6, 5),
    Bad("cycle", "FROM orders", "FROM big", "GRAPH002", 8, 3),
    Bad("unknown step in SQL", "FROM orders", "FROM ordres", "GRAPH001", 12, 12),
    Bad("path does not exist", "path: data/in", "path: data/inn", "FILES007", 5, 11),
    Bad("output is a file", "path: data/out", "path: penstock.yaml", "FILES008", 15, 37),
    Bad("empty file", GOOD, "", "SPEC002", 1, 1),
    Bad("binary file", GOOD, "\x00\x01\x02", "SPEC006", 1, 1),
]
WITH_SPARK = [
    Bad("SQL that does not parse", "SELECT id,", "SELEC id,", "SPARK002", 10, 7),
    Bad("a column that is not there", "             amount\n", "             amuont\n", "SPARK002", 11, 14),
    Bad("a function that is not there", "amount > 10", "amountt(id) > 10", "SPARK002", 13, 13),
    Bad("an unset variable", "path: data/in", "path: ${NO_SUCH_VARIABLE}", "VARIABLE001", 5, 11),
    Bad("a schema that is none", "id BIGINT, amount DOUBLE", "id BIGINTT", "SPARK001", 6),
    Bad("a mode that Spark refuses", "sinks:", "queries: {big: {mode: complete}}\nsinks:", "SINK001", 14),
]


def made(root: Path, bad: Bad) -> Path:
    files = {
        "penstock.yaml": "name: shop\n",
        "pipelines/shop.yaml": GOOD.replace(bad.old, bad.new),
        "data/in/1.json": '{"id": 1, "amount": 20.0}\n',
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def everything(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if ".penstock" not in path.parts}


def assert_one_problem(ended, bad: Bad) -> None:
    assert ended.code == 1
    assert ended.codes == [bad.code]
    problem = ended.json["problems"][0]
    assert problem["fix"]
    assert problem["where"]["line"] == bad.line
    if bad.column is not None:
        assert problem["where"]["column"] == bad.column


@pytest.mark.parametrize("bad", TEXT_ALONE, ids=lambda bad: bad.what)
def test_a_fast_check_tells_it(bad, tmp_path, penstock):
    root = made(tmp_path, bad)
    before = everything(root)
    assert_one_problem(penstock("check", "--fast", "--json", at=root), bad)
    assert everything(root) == before


@pytest.mark.spark
@pytest.mark.parametrize("bad", [*TEXT_ALONE, *WITH_SPARK], ids=lambda bad: bad.what)
@pytest.mark.parametrize("command", [("check",), ("run", "--once")], ids=" ".join)
def test_check_and_run_tell_it_and_write_nothing(bad, command, tmp_path, penstock, on_shared_spark):
    root = made(tmp_path, bad)
    before = everything(root)
    assert_one_problem(penstock(*command, "--json", at=root), bad)
    assert everything(root) == before


@pytest.mark.parametrize("command", [("check",), ("run", "--once"), ("show", "big")], ids=" ".join)
def test_no_java(command, tmp_path, penstock, monkeypatch):
    root = made(tmp_path, Bad("", "", "", "", 0))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    ended = penstock(*command, "--json", at=root)
    assert (ended.code, ended.codes) == (1, ["ENGINE001"])


def test_java_8(tmp_path, penstock, monkeypatch):
    root = made(tmp_path, Bad("", "", "", "", 0))
    java = tmp_path / "jdk8" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk8"))
    ended = penstock("run", "--once", "--json", at=root)
    assert (ended.code, ended.codes) == (1, ["ENGINE002"])
    assert "Java 8" in ended.json["problems"][0]["message"]


def test_a_checkpoint_folder_without_the_right_to_write(tmp_path, penstock, monkeypatch):
    root = made(tmp_path, Bad("", "", "", "", 0))
    storage = tmp_path / "kept"
    storage.mkdir(mode=0o555)
    (root / "penstock.yaml").write_text(f"name: shop\nstorage: {storage}\n")
    penstock("check", "--fast", at=root)  # imports all that is needed, before the rights are given up
    for folder in (root, root / "data"):
        folder.chmod(0o777)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)  # root may write everywhere
    try:
        ended = penstock("check", "--fast", "--json", at=root)
    finally:
        if was_root:
            os.seteuid(0)
    assert (ended.code, ended.codes) == (1, ["CHECKPOINT002"])
    assert list(storage.iterdir()) == []
