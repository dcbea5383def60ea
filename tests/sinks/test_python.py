"""Code of the user's as a sink: for each batch, for each row, and what is noted of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from penstock.problems import Fault, UserError
from penstock.sinks.batch import Batch
from penstock.sinks.ledger import FileLedger, InMemory
from penstock.sinks.python import Python
from penstock.storage.storage import LocalStorage
from tests.actions.test_run import checkpoint_of, forget_last_commit
from tests.conftest import place
from tests.frames import frame

EACH_BATCH = """
    pipeline: own
    latency: low
    sources: {lines: {type: files, path: in, format: text}}
    sinks: {out: {of: lines, type: python, each_batch: '%s'}}
"""
FOREACH = EACH_BATCH.replace("each_batch", "foreach")


def batch(number: int, ledger=None, put_aside=None) -> Batch:
    return Batch("p", "q", "out", number, put_aside=put_aside or (lambda rows: None), ledger=ledger or InMemory())


# The notes


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "checkpoint" / "ledger")


def test_a_note_is_kept_for_the_next_process(folder):
    notes = FileLedger(LocalStorage(), folder, "id-1")
    assert notes.done("out") == -1
    for number in (0, 7):
        notes.note("out", number)
        assert FileLedger(LocalStorage(), folder, "id-1").done("out") == number
    assert notes.done("other") == -1


def test_a_note_of_another_query_id_counts_for_nothing(folder):
    FileLedger(LocalStorage(), folder, "id-1").note("out", 7)
    assert FileLedger(LocalStorage(), folder, "id-2").done("out") == -1


def test_names_that_are_no_file_names_have_notes_of_their_own(folder):
    notes = FileLedger(LocalStorage(), folder, "id")
    names = ["a", "a/b", "a b", "../a", "..", "", "ä", "x" * 500, "x" * 501, "a-b"]
    for number, name in enumerate(names):
        notes.note(name, number)
    assert [notes.done(name) for name in names] == list(range(len(names)))
    assert {path.parent for path in Path(folder).parent.rglob("*.json")} == {Path(folder)}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"query_id": "id"}', '{"query_id": "id", "batch": "x"}'])
def test_a_spoiled_note_is_told_and_not_taken_for_none(folder, text):
    notes = FileLedger(LocalStorage(), folder, "id")
    place(Path(folder) / "out.json", text)
    with pytest.raises(Fault, match="is no note of a batch") as raised:
        notes.done("out")
    assert raised.value.code == "LEDGER001"


def test_a_folder_that_cannot_be_written_is_told(folder):
    place(Path(folder), "a file")
    with pytest.raises(Fault, match="cannot be read or written") as raised:
        FileLedger(LocalStorage(), folder, "id").note("out", 1)
    assert raised.value.code == "LEDGER001"


def test_an_action_is_done_once_for_each_batch_and_name(folder):
    done: list[str] = []
    ran = [
        batch(number, FileLedger(LocalStorage(), folder, "q")).once(name, lambda of=f"{name} {number}": done.append(of))
        for number in (0, 0, 1, 1)  # each batch is run twice, as after a crash
        for name in ("mail", "call")
    ]
    assert ran == [True, True, False, False] * 2
    assert done == ["mail 0", "call 0", "mail 1", "call 1"]


def test_an_action_that_raises_is_not_noted(folder):
    ledger = FileLedger(LocalStorage(), folder, "q")
    with pytest.raises(ZeroDivisionError):
        batch(0, ledger).once("mail", lambda: 1 / 0)
    assert batch(0, ledger).once("mail", lambda: None) is True
    assert batch(0, ledger).once("mail", lambda: None) is False


# What is refused


@pytest.mark.parametrize(
    "given", [{}, {"each_batch": "a:b", "foreach": "a:b"}, {"each_batch": "a.b"}, {"foreach": "a:"}]
)
def test_exactly_one_of_the_two_names_something(given):
    with pytest.raises(ValidationError):
        Python(**given)


def save(rows, batch):
    """A function that may be given as it is, in Python."""


def test_in_python_a_function_or_class_stands_for_its_name():
    assert Python(each_batch=save) == Python(each_batch="tests.sinks.test_python:save")
    assert Python(foreach=InMemory).foreach == "penstock.sinks.ledger:InMemory"


MODULE = """
import json


class Rows:
    def process(self, row): ...


class Strange:
    def process(self): ...


class Needy:
    def __init__(self, what): ...
    def process(self, row): ...


def one(row): ...
def two(rows, batch): ...
async def later(rows, batch): ...
def some(rows, batch):
    yield 1


number = 1


def broken(rows, batch):
    return json.loads("{" + str(batch.number))
"""


@pytest.fixture
def module(tmp_path, monkeypatch) -> str:
    for name in [name for name in sys.modules if name.endswith("_of_test")]:
        monkeypatch.delitem(sys.modules, name)
    place(tmp_path / "deliveries_of_test.py", MODULE)
    place(tmp_path / "broken_of_test.py", "x = 1\nimport no_such_thing\n")
    place(tmp_path / "raising_of_test.py", "x = 1\n\nprint(x.y)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return "deliveries_of_test"


@pytest.mark.parametrize(
    ("key", "name", "said"),
    [
        ("each_batch", "no_such_module:f", "there is no module `no_such_module`"),
        ("each_batch", "deliveries_of_test:tow", "`deliveries_of_test` has no `tow` — did you mean `two`?"),
        ("each_batch", "broken_of_test:f", "No module named 'no_such_thing', at broken_of_test.py:2"),
        (
            "each_batch",
            "raising_of_test:f",
            "'int' object has no attribute 'y', at raising_of_test.py:3",
        ),
        ("each_batch", "deliveries_of_test:one", "it does not take the rows and the batch"),
        ("each_batch", "deliveries_of_test:number", "it is no function"),
        ("each_batch", "deliveries_of_test:later", "calling it would do nothing"),
        ("each_batch", "deliveries_of_test:some", "calling it would do nothing"),
        ("foreach", "deliveries_of_test:two", "it does not take one row"),
        ("foreach", "deliveries_of_test:Strange", "it does not take one row"),
        ("foreach", "deliveries_of_test:Needy", "missing 1 required positional argument"),
        ("foreach", "deliveries_of_test:number", "has no method `process`"),
    ],
)
def test_what_cannot_be_called_is_told_before_the_start(module, key, name, said):
    with pytest.raises(Fault) as raised:
        Python(**{key: name}).judge(None)
    assert raised.value.code == "PYTHON002"
    assert said in raised.value.message
    assert raised.value.keys == (key,)


@pytest.mark.parametrize(("key", "name"), [("each_batch", "two"), ("foreach", "one"), ("foreach", "Rows")])
def test_what_can_be_called_is_taken(module, key, name):
    Python(**{key: f"{module}:{name}"}).judge(None)


def test_an_error_of_the_function_names_the_line_of_the_user_and_not_of_a_library(module):
    with pytest.raises(Fault) as raised:
        Python(each_batch=f"{module}:broken").write(None, batch(3))
    assert raised.value.code == "PYTHON001"
    line = MODULE.splitlines().index('    return json.loads("{" + str(batch.number))') + 1
    assert f"`{module}:broken` fails at {module}.py:{line}: JSONDecodeError: Expecting property" in raised.value.message


# In a pipeline

WRITER = """
from pathlib import Path

HERE = Path(__file__).parent


def save(rows, batch):
    found = ",".join(sorted(row.value for row in rows.collect()))
    with (HERE / "log.txt").open("a") as log:
        log.write(f"{batch.pipeline} {batch.sink} {batch.number} {len(batch.query_id)} {found}\\n")
    batch.once("mail", lambda: (HERE / "mail.txt").open("a").write(f"{batch.number}\\n"))
    if (HERE / "fail").exists():
        raise ValueError("the post office is closed")


def in_a_task(rows, batch):
    rows.foreach(lambda row: 1 / 0)


class PerRow:
    def open(self, partition_id, epoch_id):
        self.lines = [f"open {epoch_id}"]
        return True

    def process(self, row):
        if row.value == "bad":
            raise ValueError("a bad row")
        self.lines.append(row.value)

    def close(self, error):
        self.lines.append(f"close {error}")
        with (HERE / "rows.txt").open("a") as log:
            log.write("\\n".join(self.lines) + "\\n")
"""


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.covers("foreach-batch", "foreach-batch.once")
@pytest.mark.spark
def test_a_function_gets_each_batch_and_does_an_action_once(project_at, run_once):
    root = project_at(EACH_BATCH % "writer_a:save", files={"in/1.txt": "b\na\n", "writer_a.py": WRITER})
    place(root / "fail", "")
    failed = run_once(root)
    (problem,) = failed.problems
    assert problem.code == "PYTHON001"
    assert "writer_a.py:13: ValueError: the post office is closed" in problem.message
    assert problem.where is not None
    assert problem.where.file.endswith("p0.yaml")
    (root / "fail").unlink()
    assert run_once(root).ok
    assert lines_of(root / "log.txt") == ["own out 0 36 a,b"] * 2
    assert lines_of(root / "mail.txt") == ["0"]
    place(root / "in/2.txt", "c\n")
    assert run_once(root).ok
    assert lines_of(root / "log.txt")[2:] == ["own out 1 36 c"]
    assert lines_of(root / "mail.txt") == ["0", "1"]


@pytest.mark.spark
def test_an_error_in_a_task_is_told_in_one_line(project_at, run_once):
    root = project_at(EACH_BATCH % "writer_b:in_a_task", files={"in/1.txt": "a\n", "writer_b.py": WRITER})
    (problem,) = run_once(root).problems
    assert problem.code == "PYTHON001"
    assert problem.message.endswith("writer_b.py:17: ZeroDivisionError: division by zero")
    assert "\n" not in problem.message


@pytest.mark.covers("foreach.object")
@pytest.mark.spark
def test_a_class_gets_each_row_from_sparks_own_foreach(project_at, run_once):
    root = project_at(FOREACH % "writer_c:PerRow", files={"in/1.txt": "a\n", "writer_c.py": WRITER})
    assert run_once(root).ok
    forget_last_commit(checkpoint_of(root, "own", "lines"))
    assert run_once(root).ok
    assert lines_of(root / "rows.txt").count("a") == 2  # at-least-once
    assert set(lines_of(root / "rows.txt")) == {"open 0", "a", "close None"}


@pytest.mark.spark
def test_a_class_gets_each_row_beside_another_sink_too(spark, module, tmp_path, monkeypatch):
    place(tmp_path / "writer_d.py", WRITER)
    sink = Python(foreach="writer_d:PerRow")
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(tmp_path))
    sink.write(frame(spark, [("a",), ("b",)], "value STRING").coalesce(1), batch(4))
    assert lines_of(tmp_path / "rows.txt") == ["open 4", "a", "b", "close None"]
    with pytest.raises(Fault) as raised:
        sink.write(frame(spark, [("bad",)], "value STRING").coalesce(1), batch(5))
    assert raised.value.message == "`writer_d:PerRow` fails at writer_d.py:27: ValueError: a bad row"
    assert "close a bad row" in lines_of(tmp_path / "rows.txt")


@pytest.mark.spark
def test_a_missing_function_is_told_before_anything_is_read(project_at, run_once):
    root = project_at(EACH_BATCH % "writer_e:saev", files={"in/1.txt": "a\n", "writer_e.py": WRITER})
    with pytest.raises(UserError) as raised:
        assert run_once(root).problems == ()
    (problem,) = raised.value.problems
    assert "saev" in problem.message
    assert "did you mean `save`?" in problem.message


def test_notes_are_json_for_people_to_read(folder):
    FileLedger(LocalStorage(), folder, "id").note("out", 3)
    assert json.loads((Path(folder) / "out.json").read_text()) == {"query_id": "id", "name": "out", "batch": 3}
