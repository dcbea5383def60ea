"""What several test modules share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.checks.rule import Subject
from penstock.checks.runner import judge
from penstock.pipeline import from_yaml, project
from penstock.pipeline.model import Pipeline
from penstock.pipeline.yaml_text import parse
from penstock.problems import Problem, UserError

Read = Callable[[str], Pipeline]
Judged = Callable[[str], tuple[Problem, ...]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """A pipeline from YAML, in a project at `tmp_path`."""
    return lambda text: from_yaml.from_document(parse(text, "pipeline.yaml"), tmp_path)


@pytest.fixture
def judged(tmp_path: Path, read: Read) -> Judged:
    """All that is wrong with a pipeline's text, whether it is found when it is read or when it is judged."""

    def judged(text: str) -> tuple[Problem, ...]:
        try:
            return judge(Subject(project.bare(tmp_path), read(text)))
        except UserError as error:
            return error.problems

    return judged
