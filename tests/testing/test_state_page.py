"""The page on state of one's own says what is so: its blocks run."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.checks.every_rule import judge
from penstock.checks.rule import Subject
from penstock.pipeline import from_yaml, project
from penstock.pipeline.yaml_text import parse

PAGE = Path(__file__).parents[2] / "docs/how-to/state.md"


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_processor_of_the_page_passes_its_own_test(tmp_path):
    names: dict[str, object] = {"__name__": "fraud"}
    for block in blocks("python"):
        exec(block, names)
    pipeline = next(block for block in blocks("yaml") if "\npipeline:" in block)
    (tmp_path / "fraud.py").write_text(blocks("python")[0])
    read = from_yaml.from_document(parse(pipeline, "fraud.yaml"), tmp_path)
    assert judge(Subject(project.bare(tmp_path), read)) == ()
