"""Steps with state: a user's own processors and functions, on real Spark."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from textwrap import dedent

import pytest

from penstock.actions.check import check
from penstock.actions.run import RunOptions, run
from penstock.actions.show import show
from penstock.engine.session import Engine
from penstock.problems import Problem, errors_in
from penstock.supervise.stopping import Stop
from penstock.testing import ProcessorTester
from tests.conftest import place

pytestmark = pytest.mark.spark

MODULES = {
    "counting.py": """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Counter(StatefulProcessor):
    '''Counts each word; remembers the lines that had it, and how often each line did.'''

    def __init__(self, step=1):
        self.step = step

    def init(self, handle):
        self.total = handle.getValueState("total", "n INT")
        self.lines = handle.getListState("lines", "line INT")
        self.often = handle.getMapState("often", "line INT", "n INT")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            self.total.update(((self.total.get() or (0,))[0] + self.step,))
            self.lines.appendValue((row.line,))
            self.often.updateValue((row.line,), ((self.often.getValue((row.line,)) or (0,))[0] + 1,))
        most = max(self.often.iterator(), key=lambda entry: entry[1][0])
        yield Row(word=key[0], n=self.total.get()[0], lines=[line for (line,) in self.lines.get()], most=most[0][0])

    def handleInitialState(self, key, initialState, timerValues):
        self.total.update((initialState.n,))
""",
    "wider.py": """
import counting
from pyspark.sql import Row


class Changed(counting.Counter):
    total_of = "n INT"

    def init(self, handle):
        self.total = handle.getValueState("total", self.total_of)
        self.lines = handle.getListState("lines", "line INT")


class Counter(Changed):
    '''Its total is wider, and has a new column; a map is not used any more.'''

    total_of = "n LONG, label STRING"

    def handleInputRows(self, key, rows, timerValues):
        before = self.total.get() or (0, None)
        self.total.update((before[0] + sum(1 for _ in rows), "new"))
        yield Row(word=key[0], n=self.total.get()[0], lines=[line for (line,) in self.lines.get()], most=None)


class Worded(Changed):
    total_of = "n STRING"


class Listed(Changed):
    def init(self, handle):
        self.total = handle.getListState("total", "n INT")


class Broken(Changed):
    def init(self, handle):
        self.total = handle.getValueState("total", self.nowhere)


class Twice(Changed):
    def init(self, handle):
        super().init(handle)
        super().init(handle)


class Expiring(Changed):
    def init(self, handle):
        self.brief = handle.getValueState("brief", "n INT", 1_000)
""",
    "visits.py": """
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class Visits(StatefulProcessor):
    '''The pages of a visit; it ends ten seconds after its last page.'''

    def init(self, handle):
        self.handle = handle
        self.pages = handle.getMapState("pages", "page STRING", "n LONG")
        self.times = handle.getListState("times", "at LONG")

    def handleInputRows(self, key, rows, timerValues):
        for row in rows:
            self.pages.updateValue((row.page,), ((self.pages.getValue((row.page,)) or (0,))[0] + 1,))
            self.times.appendValue((row.second,))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer((max(at for (at,) in self.times.get()) + 10) * 1_000)
        return iter([])

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        times = [at for (at,) in self.times.get()]
        yield Row(user=key[0], pages=sum(n for (n,) in self.pages.values()), first=min(times), last=max(times),
                  ended=timerValues.getCurrentWatermarkInMs() // 1_000)
        self.pages.clear()
        self.times.clear()
""",
    "clock.py": """
import pandas as pd
from pyspark.sql.streaming import StatefulProcessor


class Clock(StatefulProcessor):
    '''State that lives for a millisecond, and a timer after another. Takes and gives frames of pandas.'''

    def init(self, handle):
        self.handle = handle
        self.seen = handle.getValueState("seen", "n LONG")
        self.brief = handle.getValueState("brief", "n LONG", 1)

    def handleInputRows(self, key, rows, timerValues):
        rows = sum(len(frame) for frame in rows)
        seen, brief = ((state.get() or (0,))[0] + rows for state in (self.seen, self.brief))
        self.seen.update((seen,))
        self.brief.update((brief,))
        self.handle.registerTimer(timerValues.getCurrentProcessingTimeInMs() + 1)
        yield pd.DataFrame({"word": [key[0]], "said": ["rows"], "seen": [seen], "brief": [brief]})

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield pd.DataFrame({"word": [key[0]], "said": ["timer"], "seen": [self.seen.get()[0]], "brief": [-1]})
""",
    "frames.py": """
import pandas as pd


def counted(key, frames, state):
    n = (state.get[0] if state.exists else 0) + sum(len(frame) for frame in frames)
    state.update((n,))
    yield pd.DataFrame({"word": [key[0]], "n": [n]})


def until_silent(key, frames, state):
    if state.hasTimedOut:
        yield pd.DataFrame({"user": [key[0]], "last": [state.get[0]]})
        state.remove()
        return
    last = max([int(second) for frame in frames for second in frame.second] + [state.get[0] if state.exists else 0])
    state.update((last,))
    state.setTimeoutTimestamp((last + 10) * 1_000)
    yield pd.DataFrame({"user": [], "last": []}).astype({"user": str, "last": int})


def now_and_then(key, frames, state):
    late = state.hasTimedOut
    if not late:
        state.update((sum(len(frame) for frame in frames),))
        state.setTimeoutDuration(1)
    yield pd.DataFrame({"word": [key[0]], "late": [late]})
    if late:
        state.remove()
""",
}
LINES = (
    "lines: {type: files, path: lines, max_files_per_trigger: 1, format: {type: csv, schema: 'word STRING, line INT'}}"
)
WATERMARK = ", watermark: {column: at, delay: 2 seconds}"
CLICKS = (
    "clicks: {type: files, path: clicks, max_files_per_trigger: 1, format: {type: csv,"
    " schema: 'user STRING, page STRING, second LONG'}}"
)
COUNTER = "with: counting:Counter, output: 'word STRING, n LONG, lines ARRAY<INT>, most INT'"
PIPELINES = (
    f"""
    pipeline: counts
    sources:
      {LINES}
    steps:
      counted: {{process: {{of: lines, key: [word], {COUNTER}}}}}
    sinks:
      counted: {{of: counted, type: files, path: out/counted, format: json}}
    """,
    f"""
    pipeline: beginnings
    sources:
      {LINES}
      known: {{type: files, path: known, read: static, format: {{type: csv, schema: 'word STRING, n INT'}}}}
    steps:
      begun: {{process: {{of: lines, key: [word], {COUNTER}, options: {{step: 2}}, initial: known}}}}
    sinks:
      begun: {{of: begun, type: files, path: out/begun, format: json}}
    """,
    f"""
    pipeline: visits
    sources:
      {CLICKS}
    steps:
      timed: {{sql: "SELECT *, timestamp_seconds(second) AS at FROM clicks"{WATERMARK}}}
      ended:
        process: {{of: timed, key: [user], with: "visits:Visits", time: event_time,
                  output: "user STRING, pages LONG, first LONG, last LONG, ended LONG"}}
      silent: {{pandas_state: {{of: timed, key: [user], with: "frames:until_silent", timeout: event_time,
               output: "user STRING, last LONG", state: last LONG}}}}
    sinks:
      ended: {{of: ended, type: files, path: out/ended, format: json}}
      silent: {{of: silent, type: files, path: out/silent, format: json}}
    """,
    f"""
    pipeline: clocks
    sources:
      {LINES}
    steps:
      ticked: {{process: {{of: lines, key: [word], with: "clock:Clock", rows: pandas, time: processing_time,
               output: "word STRING, said STRING, seen LONG, brief LONG"}}}}
      late: {{pandas_state: {{of: lines, key: [word], with: "frames:now_and_then", timeout: processing_time,
             output: "word STRING, late BOOLEAN", state: n LONG}}}}
      counted: {{pandas_state: {{of: lines, key: [word], with: "frames:counted", output: "word STRING, n LONG",
                state: n LONG}}}}
    sinks:
      ticked: {{of: ticked, type: files, path: out/ticked, format: json}}
      late: {{of: late, type: files, path: out/late, format: json}}
      counted: {{of: counted, type: delta, path: out/changed, write: upsert, keys: [word]}}
    queries: {{counted: {{mode: update}}}}
    """,
)
NAMES = ("counts", "beginnings", "visits", "clocks")
BATCHES = (
    "ann,home,1\nbob,home,2\n",
    "ann,cart,8\n",
    "cid,home,15\n",
    "dan,home,16\n",
    "bob,cart,20\n",
    "eve,home,40\n",
)
"""User, page and second. The watermark is two seconds behind the last."""


def ran(root: Path, engine: Engine) -> list[Problem]:
    """Runs pipeline after pipeline: Spark starts a Python process for each processor, and waits ten seconds for it."""
    shared = replace(engine, jvm=None)
    ways = (None, RunOptions(once=True), lambda *_: shared, Stop(), lambda snapshot: None, lambda line: None)
    return [problem for name in NAMES for problem in run(root, (name,), *ways).problems]


def put(root: Path, folder: str, name: str, text: str) -> None:
    """Files are taken in the order of their times."""
    place(root / folder / name, text)
    at = int(name.partition(".")[0])
    os.utime(root / folder / name, (at, at))


@pytest.fixture(scope="module")
def root(tmp_path_factory, engine) -> Path:
    """A project that ran twice: the second time it went on with the state of the first."""
    root = tmp_path_factory.mktemp("process")
    place(root / "penstock.yaml", "name: process\n")
    for number, text in enumerate(PIPELINES):
        place(root / f"pipelines/p{number}.yaml", dedent(text))
    for name, text in MODULES.items():
        place(root / name, text)
    place(root / "known/1.csv", "dog,100\nowl,7\n")
    for number, text in enumerate(BATCHES[:2], 1):
        put(root, "clicks", f"{number}.csv", text)
    put(root, "lines", "1.csv", "dog,1\ncat,1\ndog,1\n")
    assert ran(root, engine) == []
    for number, text in enumerate(BATCHES[2:], 3):
        put(root, "clicks", f"{number}.csv", text)
    put(root, "lines", "2.csv", "dog,2\n")
    put(root, "lines", "3.csv", "dog,2\nfox,3\n")
    assert ran(root, engine) == []
    return root


@pytest.fixture
def rows(root, spark):
    """The rows of a sink, in order."""

    def rows(sink: str) -> list[dict]:
        found = [json.loads(row.value) for row in spark.read.text(str(root / "out" / sink)).collect()]
        return sorted(found, key=lambda row: list(map(str, row.values())))

    return rows


@pytest.mark.covers("state.values", "state.restart")
def test_values_lists_and_maps_are_kept_over_a_restart(rows):
    found = [(row["word"], row["n"], row["lines"], row["most"]) for row in rows("counted")]
    assert found == [
        ("cat", 1, [1], 1),
        ("dog", 2, [1, 1], 1),
        ("dog", 3, [1, 1, 2], 1),
        ("dog", 4, [1, 1, 2, 2], 1),
        ("fox", 1, [3], 3),
    ]


@pytest.mark.covers("state.initial")
def test_a_new_checkpoint_begins_with_the_initial_state(rows):
    assert [(row["word"], row["n"]) for row in rows("begun")] == [
        ("cat", 2),
        ("dog", 104),
        ("dog", 106),
        ("dog", 108),
        ("fox", 2),
    ]


@pytest.mark.covers("state.timers")
def test_event_timers_go_off_in_spark_as_in_the_tester(root, rows):
    namespace: dict = {}
    exec(MODULES["visits.py"], namespace)
    tester = ProcessorTester(namespace["Visits"], key=["user"], time="event_time")
    expected = []
    checkpoint = root / "storage/checkpoints/visits/ended/0001"
    last = max(int(file.name) for file in (checkpoint / "commits").iterdir() if file.name.isdigit())
    waiting = list(BATCHES)
    for batch in range(last + 1):
        _, conf, offset, *_ = (checkpoint / f"offsets/{batch}").read_text().splitlines()
        # A batch without rows leaves the source's offset where it was.
        read = json.loads(offset)["logOffset"] + 1 - (len(BATCHES) - len(waiting))
        lines = [line.split(",") for text in waiting[:read] for line in text.splitlines()]
        del waiting[:read]
        clicks = [{"user": user, "page": page, "second": int(second)} for user, page, second in lines]
        expected += tester.batch(clicks, watermark=json.loads(conf)["batchWatermarkMs"])
    assert waiting == []
    found = [tuple(row[name] for name in ("user", "pages", "first", "last", "ended")) for row in rows("ended")]
    assert found == sorted(tuple(row) for row in expected)
    # The watermark is at 13 with the third click of all, and at 18, when ann's timer is due, with the last.
    assert [row for row in found if row[0] in ("ann", "bob")] == [
        ("ann", 2, 1, 8, 18),
        ("bob", 1, 2, 2, 13),
        ("bob", 1, 20, 20, 38),
    ]


@pytest.mark.covers("state.ttl", "state.timers")
def test_ttl_and_timers_go_by_the_clock_and_a_run_to_the_end_ends(rows):
    dogs = [(row["said"], row["seen"], row["brief"]) for row in rows("ticked") if row["word"] == "dog"]
    assert [dog for dog in dogs if dog[0] == "rows"] == [("rows", 2, 2), ("rows", 3, 1), ("rows", 4, 1)]
    # Set in one batch, each goes off in the next one that has rows.
    assert [dog[1] for dog in dogs if dog[0] == "timer"] == [3, 4]


@pytest.mark.covers("state.pandas")
def test_functions_over_pandas_keep_state_and_time_out(root, rows, spark):
    assert [(row["user"], row["last"]) for row in rows("silent")] == [
        ("ann", 8),
        ("bob", 2),
        ("bob", 20),
        ("cid", 15),
        ("dan", 16),
    ]
    changed = spark.read.format("delta").load(str(root / "out/changed")).collect()
    assert {row.word: row.n for row in changed} == {"cat": 1, "dog": 4, "fox": 1}
    late = [(row["word"], row["late"]) for row in rows("late")]
    assert late.count(("dog", False)) == 3
    assert ("cat", True) in late


@pytest.mark.parametrize(
    ("step", "columns", "least"),
    [("counted", 4, 3), ("ended", 5, 0), ("ticked", 4, 3)],
)
def test_a_processor_can_be_looked_at(root, start_engine, step, columns, least):
    pipeline = {"counted": "counts", "ended": "visits"}.get(step, "clocks")
    found = show(root, step, pipeline, 20, None, start_engine)
    assert len(found.columns) == columns
    assert len(found.rows) >= least


@pytest.mark.covers("state.evolution", "recovery.state-changed")
def test_state_follows_a_change_that_is_allowed_and_others_are_refused_before_the_start(
    project_at, run_once, start_engine, spark
):
    root = project_at(PIPELINES[0], files=MODULES | {"lines/1.csv": "dog,1\n"})
    pipeline = root / "pipelines/p0.yaml"
    written = pipeline.read_text()
    assert run_once(root).problems == ()

    wider = written.replace("counting:Counter", "wider:Counter")
    pipeline.write_text(wider)
    place(root / "lines/2.csv", "dog,2\nfox,2\n")
    assert run_once(root).problems == ()
    found = {(row.word, row.n) for row in spark.read.json(str(root / "out/counted")).collect()}
    assert found == {("dog", 1), ("dog", 2), ("fox", 1)}

    for changed, codes, said in (
        (wider.replace("wider:Counter", "wider:Worded"), ["STATE001"], "`total` has the columns (n STRING)"),
        (wider.replace("wider:Counter", "wider:Listed"), ["STATE002"], "`total` is a list"),
        (written, ["STATE001"], "n INT"),
        (wider.replace("key: [word]", "key: [line]"), ["STATE003"], "by (line INT)"),
        (wider.replace("key: [word]", "key: [word], time: processing_time"), ["STATE004"], "`time: none`"),
        (wider + "queries: {counted: {mode: update}}\n", ["STATE004"], "output mode `append`"),
        (wider.replace("wider:Counter", "wider:Broken"), ["PROCESS007"], "no attribute 'nowhere'"),
        (wider.replace("wider:Counter", "wider:Twice"), ["PROCESS007"], "`total` is declared twice"),
        (wider.replace("wider:Counter", "wider:Expiring"), ["PROCESS008"], "`brief`"),
    ):
        pipeline.write_text(changed.replace("type: files, path: out/counted, format: json", "type: console"))
        errors = errors_in(check(root, (), None, start_engine).problems)
        assert [one.code for one in errors] == codes, errors
        assert said in errors[0].message
        assert errors[0].where is not None
        assert errors[0].where.file == "pipelines/p0.yaml"


@pytest.mark.parametrize(
    ("old", "new", "code", "said"),
    [
        ("key: [word]", "key: [wrod]", "PROCESS003", "did you mean `word`"),
        ("n LONG, lines", "n LNOG, lines", "PROCESS004", "does not declare columns"),
        ("counting:Counter", "counting:Counters", "PROCESS001", "did you mean `Counter`"),
        ("options: {step: 2}", "options: {stop: 2}", "PROCESS002", "did you mean `step`"),
        ("initial: known", "initial: lines", "PROCESS005", "is a stream"),
        ("read: static,", "", "PROCESS005", "is a stream"),
    ],
)
def test_mistakes_are_told_before_the_start(project_at, start_engine, old, new, code, said):
    text = PIPELINES[1].replace(old, new)
    root = project_at(text, files=MODULES | {"lines/1.csv": "dog,1\n", "known/1.csv": "dog,1\n"})
    problems = errors_in(check(root, (), None, start_engine).problems)
    assert {problem.code for problem in problems} == {code}
    assert said in problems[0].message


def test_event_time_needs_a_watermark(project_at, start_engine):
    text = PIPELINES[2].replace(WATERMARK, "")
    root = project_at(text, files=MODULES | {"clicks/1.csv": BATCHES[0]})
    problems = check(root, (), None, start_engine).problems
    assert {problem.code for problem in problems} == {"OPERATION011", "OPERATION013"}
