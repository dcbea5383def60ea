"""What the text of a pipeline and of its modules tells of steps with state, without Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock import Pipeline, sinks, sources
from penstock.actions.check import check
from penstock.problems import UserError
from penstock.transforms.processor_text import require_processor

TEXT = """
pipeline: fraud
sources: {payments: {type: rate}}
steps:
  scored:
    process: {of: payments, key: [value], with: "fraud:Velocity", output: value LONG}
sinks: {out: {of: scored, type: console}}
"""
FRAUD = """
import abc
from dataclasses import dataclass

from elsewhere import Other
from pyspark.sql import streaming
from pyspark.sql.streaming import StatefulProcessor

Alias = Other

def count(key, rows, state): ...

class Velocity(StatefulProcessor):
    def init(self, handle): ...
    def handleInputRows(self, key, rows, timerValues): ...

class Limited(Velocity):
    def __init__(self, limit, *, label="x"): ...

class Loose(Velocity):
    def __init__(self, **options): ...

class Dotted(streaming.StatefulProcessor):
    def init(self, handle): ...
    def handleInputRows(self, key, rows, timerValues): ...

@dataclass
class Fields(Velocity):
    limit: int

class Mixed(Other, abc.ABC): ...

class Half(StatefulProcessor):
    def init(self, handle): ...

class Plain:
    class Inner: ...
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "fraud.py").write_text(FRAUD)
    (tmp_path / "broken.py").write_text("class:")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("fraud:Velocity", {}),
        ("fraud:Limited", {"limit": 3}),
        ("fraud:Limited", {"limit": 3, "label": "y"}),
        ("fraud:Loose", {"anything": 1}),
        ("fraud:Dotted", {}),
        # What the text does not tell is left to Python.
        ("fraud:Fields", {"limit": 3}),
        ("fraud:Mixed", {"limit": 3}),
        ("fraud:Alias", {}),
        ("fraud:Other", {}),
        ("fraud:Plain.Inner", {}),
    ],
)
def test_a_processor_is_found_in_the_text(root, name, options):
    require_processor(name, options, root)


@pytest.mark.parametrize(
    ("name", "options", "code", "said"),
    [
        ("fruad:Velocity", {}, "PROCESS001", "no module `fruad` — did you mean `fraud`?"),
        ("fraud:Velocty", {}, "PROCESS001", "no class `Velocty` — did you mean `Velocity`?"),
        ("fraud:count", {}, "PROCESS001", "it is a function"),
        ("fraud:Plain", {}, "PROCESS001", "made from another class"),
        ("fraud:Half", {}, "PROCESS001", "does not define `handleInputRows`"),
        ("broken:Velocity", {}, "PROCESS001", "is not Python"),
        ("fraud:Velocity", {"limit": 3}, "PROCESS002", "it takes none, and gets `limit`"),
        ("fraud:Limited", {}, "PROCESS002", "it needs `limit`"),
        ("fraud:Limited", {"limit": 3, "lable": "y"}, "PROCESS002", "no `lable` — did you mean `label`?"),
    ],
)
def test_what_is_no_processor_or_does_not_fit_is_told(root, judged, name, options, code, said):
    (problem,) = judged(TEXT.replace('"fraud:Velocity"', f'"{name}", options: {options}'))
    assert problem.code == code
    assert said in problem.message
    assert str(problem.where).startswith("pipeline.yaml:6:")


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("of: payments", "of: paymants", "GRAPH001", "did you mean `payments`"),
        ("output:", "initial: known, output:", "GRAPH001", "`known`"),
        ("key: [value]", "key: []", "SPEC009", "`key`"),
        (", output: value LONG", "", "PROCESS004", "which columns it gives"),
        ("output:", "time: sometimes, output:", "SPEC009", "`time`"),
        ("with:", "which:", "SPEC007", "`which`"),
        ('"fraud:Velocity"', "fraud velocity", "SPEC009", "`with`"),
        ("process: {of: payments, ", "process: {", "SPEC008", "`of` is missing"),
        ("process: {", "pandas_state: {state: n LONG, ", "SPEC012", "no function `Velocity`"),
    ],
)
def test_each_wrong_key_is_one_problem(root, judged, old, new, code, said):
    problems = judged(TEXT.replace(old, new))
    assert [problem.code for problem in problems] == [code]
    assert said in problems[0].message


class Velocity:
    """Stands for a processor: only its name matters here."""


def test_python_and_yaml_make_the_same_pipeline(root, read):
    made = Pipeline("fraud")
    made.source("payments", sources.Rate())
    made.process("scored", of="payments", key=["value"], with_="fraud:Velocity", output="value LONG")
    made.pandas_state(
        "counted",
        of="scored",
        key=["value"],
        with_="fraud:count",
        output="n LONG",
        state="n LONG",
        timeout="event_time",
    )
    made.sink("out", sinks.Console(), of="counted")
    text = TEXT.replace("of: scored", "of: counted").replace(
        "sinks:",
        '  counted: {pandas_state: {of: scored, key: [value], with: "fraud:count", output: n LONG, state: n LONG,'
        " timeout: event_time}}\nsinks:",
    )
    assert made.build() == read(text)


def test_python_may_give_the_class_itself():
    made = Pipeline("fraud")
    made.source("payments", sources.Rate())
    made.process("scored", of="payments", key=["value"], with_=Velocity, output="value LONG")
    made.sink("out", sinks.Console(), of="scored")
    (step,) = made.build().steps
    assert step.code is Velocity
    assert step.spec.process.with_ == f"{__name__}:Velocity"
    with pytest.raises(UserError) as raised:
        made.process("other", of="payments", key=[], with_=Velocity)
    assert raised.value.problems[0].code == "SPEC009"
    assert raised.value.problems[0].where.file.endswith("test_process_text.py")


def test_a_fast_check_tells_it_without_spark(root):
    (root / "penstock.yaml").write_text("name: fraud\n")
    (root / "pipelines").mkdir()
    (root / "pipelines/fraud.yaml").write_text(TEXT.replace("fraud:Velocity", "fraud:Half"))
    assert [problem.code for problem in check(root, (), None, None).problems] == ["PROCESS001"]
    (root / "pipelines/fraud.yaml").write_text(TEXT)
    code = "import sys; from pathlib import Path; from penstock.actions.check import check;" \
        f"assert check(Path({str(root)!r}), (), None, None).ok; assert 'pyspark' not in sys.modules"  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)
