"""`penstock checkpoint` as a user meets it, before anything was started."""

from __future__ import annotations

from pathlib import Path

import pytest

PIPELINE = """\
pipeline: shop
sources: {lines: {type: files, path: data/in, format: text}}
sinks: {out: {of: lines, type: files, path: data/out, format: text}}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("penstock.yaml", "name: shop\n"), ("pipelines/shop.yaml", PIPELINE)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_project_that_was_never_run_has_nothing_to_show(penstock, project):
    assert "no checkpoints" in penstock("checkpoint", "list", at=project).out
    assert penstock("checkpoint", "list", "--json", at=project).json == {"ok": True, "checkpoints": []}
    assert penstock("checkpoint", "verify", "--json", at=project).json == {"ok": True, "checkpoints": []}
    for words in (("show", "lines"), ("verify", "shop.lines"), ("reset", "lines", "--from", "earliest")):
        ended = penstock("checkpoint", *words, "--json", at=project)
        assert (ended.code, ended.codes) == (1, ["CHECKPOINT023"])


def test_wrong_words_are_exit_code_2(penstock, project):
    for words in ((), ("--from", "yesterday"), ("--from", "earliest", "--keep-output", "--empty-output")):
        assert penstock("checkpoint", "reset", "lines", *words, at=project).code == 2


def test_a_query_that_is_not_there_is_named_with_one_that_is(penstock, project):
    ended = penstock("checkpoint", "show", "line", "--json", at=project)
    assert (ended.code, ended.codes) == (1, ["CHECKPOINT023"])
    assert "did you mean `lines`?" in ended.out
