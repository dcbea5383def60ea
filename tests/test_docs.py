"""The docs agree with the code: generated pages, links, YAML blocks and codes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from penstock.actions.explain import all_explanations
from penstock.checks.every_rule import judge
from penstock.checks.rule import Subject
from penstock.pipeline import from_yaml, project
from penstock.pipeline.yaml_text import parse
from penstock.problems import Problem, UserError
from tests.modules import make_modules

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*/README.md")])
TEMPLATE = Path(str(files("penstock.templates") / "orders"))

_FENCED = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_CODE = re.compile(r"\b[A-Z]+[0-9]{3}\b")
_NO_CODES = {"SHA256"}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(first_key: str) -> list[object]:
    """The YAML blocks of all pages that start with a key, each with whether it is marked as wrong."""
    return [
        pytest.param(block["text"], block["info"].endswith(" wrong"), id=f"{named(page)}#{number}")
        for page in PAGES
        for number, block in enumerate(_FENCED.finditer(page.read_text(encoding="utf-8")))
        if block["info"].startswith("yaml") and block["text"].startswith(f"{first_key}:")
    ]


def judged(text: str) -> tuple[Problem, ...]:
    """All that is wrong with a pipeline's text, in a project with the template's modules and those that it names."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        shutil.copy(TEMPLATE / "steps.py", root)
        make_modules(text, root)
        try:
            pipeline = from_yaml.from_document(parse(text, "block.yaml"), root)
        except UserError as error:
            return error.problems
        return judge(Subject(project.bare(root), pipeline))


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in _HEADING.findall(prose)}


def test_generated_pages_are_up_to_date() -> None:
    script = ROOT / "scripts" / "write_docs.py"
    result = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_resolve(page: Path) -> None:
    for link in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors_of(target), f"{link}: no such heading"


@pytest.mark.parametrize(("text", "wrong"), blocks("pipeline"))
def test_pipelines_are_as_right_as_they_say(text: str, wrong: bool) -> None:
    problems = judged(text)
    assert bool(problems) == wrong, [str(problem) for problem in problems]


@pytest.mark.parametrize(("text", "wrong"), blocks("name"))
def test_projects_load(text: str, wrong: bool) -> None:
    assert not wrong
    assert project.from_document(parse(text, project.FILE), TEMPLATE).name


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_codes_exist(page: Path) -> None:
    known = {explanation.code for explanation in all_explanations()}
    assert set(_CODE.findall(page.read_text(encoding="utf-8"))) <= known | _NO_CODES


def test_the_architecture_page_names_files_that_are_there() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    named = set(re.findall(r"(?<![\w/<>.-])((?:\w+/)+\w+\.py)", text)) - {"src/penstock/sources/pulsar.py"}
    rooms = (ROOT, ROOT / "src/penstock", ROOT / "src/penstock/bench")
    assert len(named) > 40
    assert [file for file in sorted(named) if not any((room / file).is_file() for room in rooms)] == []
