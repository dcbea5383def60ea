"""The options of ready-made processors: they explain themselves, and each mistake is one Problem at its place."""

from __future__ import annotations

import inspect
import subprocess
import sys
from textwrap import indent

import pytest
import yaml
from pyspark import cloudpickle
from pyspark.sql.types import (
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from penstock import Pipeline, sinks, sources
from penstock.problems import Fault, UserError
from penstock.processors import READY_MADE

WORDS = sorted(READY_MADE)
CLICKS = (
    StructType()
    .add("user", StringType())
    .add("at", TimestampType(), metadata={"spark.watermarkDelayMs": 600_000})
    .add("sent", TimestampType())
    .add("page", StringType())
    .add("spent", DecimalType(8, 2))
    .add("clicks", IntegerType())
    .add("load", DoubleType())
    .add("tags", MapType(StringType(), IntegerType()))
    .add("day", DateType())
)
PIPELINE = """\
pipeline: visits
sources:
  clicks:
    type: rate
    watermark: {column: timestamp, delay: 10 minutes}
steps:
  made:
    process:
      of: clicks
      key: [value]
      with: WORD
      options:
        OPTIONS
sinks: {out: {of: made, type: console}}
"""


def pipeline(word: str, options: str) -> str:
    return PIPELINE.replace("WORD", word).replace("OPTIONS", options.replace("\n", "\n        "))


@pytest.mark.parametrize("word", WORDS)
def test_each_says_what_it_is_and_what_its_options_are(word):
    spec = READY_MADE[word]
    assert inspect.cleandoc(spec.__doc__ or "").splitlines()[0].endswith(".")
    assert [name for name, field in spec.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("word", WORDS)
def test_each_example_is_a_step_that_nothing_is_wrong_with(word, judged):
    example = READY_MADE[word].example
    declared = yaml.safe_load(example)["process"]
    assert declared["with"] == word
    source = "{type: rate, watermark: {column: timestamp, delay: 10 minutes}}"
    steps = indent(f"made:\n{indent(example, '  ')}", "  ")
    assert (
        judged(
            f"pipeline: p\nsources: {{{declared['of']}: {source}}}\nsteps:\n{steps}\n"
            "sinks: {out: {of: made, type: console}}\n"
        )
        == ()
    )


BAD_TEXTS = {
    "unknown option": ("sessionize", "time: at\ngap: 5 minutes\ngapp: 1", "SPEC007", 15),
    "misspelled option": ("sessionize", "tim: at\ngap: 5 minutes", "SPEC007", 13),
    "missing option": ("sessionize", "time: at", "SPEC008", 13),
    "no duration": ("sessionize", "time: at\ngap: soon", "SPEC009", 14),
    "no time at all": ("sessionize", "time: at\ngap: 0 seconds", "SPEC009", 14),
    "strange aggregate": (
        "sessionize",
        "time: at\ngap: 1 hour\naggregates:\n  all: first(page)\n  mid: median(page)",
        "SPEC009",
        17,
    ),
    "span that is no duration": ("velocity", "time: at\nspans:\n- 1 minute\n- always", "SPEC009", 16),
    "no spans": ("velocity", "time: at\nspans: []", "SPEC009", 14),
    "a span twice": ("velocity", "time: at\nspans: [60 seconds, 1 minute]", "SPEC009", 14),
    "no places": ("top_n", "by: value\nn: 0", "SPEC009", 14),
    "no number": ("top_n", "by: value\nn: many", "SPEC009", 14),
    "a span without a time": ("top_n", "n: 3\nby: value\nspan: 1 hour", "SPEC009", 13),
    "event time without a column": ("last_seen", "absent_after: 1 hour", "SPEC009", 13),
    "strange clock": ("last_seen", "absent_after: 1 hour\ntime: at\nclock: sundial", "SPEC009", 15),
    "no such processor": ("sessionise", "time: at", "READY004", 11),
}


@pytest.mark.parametrize(("word", "options", "code", "line"), BAD_TEXTS.values(), ids=BAD_TEXTS)
def test_a_mistake_in_the_text_is_one_problem_at_its_line(word, options, code, line, judged):
    (problem,) = judged(pipeline(word, options))
    assert (problem.code, problem.where.line) == (code, line)
    assert problem.fix


BAD_COLUMNS = {
    "no such time": ("sessionize", {"time": "att", "gap": "1 hour"}, "READY001", ("time",)),
    "no time": ("sessionize", {"time": "page", "gap": "1 hour"}, "READY002", ("time",)),
    "another time": ("sessionize", {"time": "sent", "gap": "1 hour"}, "READY006", ("time",)),
    "another time to be seen": ("last_seen", {"time": "sent", "absent_after": "1 hour"}, "READY006", ("time",)),
    "a day is no time": ("velocity", {"time": "day", "spans": ["1 hour"]}, "READY002", ("time",)),
    "no such aggregate": (
        "sessionize",
        {"time": "at", "gap": "1 hour", "aggregates": {"n": "count(pages)"}},
        "READY001",
        ("aggregates", "n"),
    ),
    "sum of texts": (
        "sessionize",
        {"time": "at", "gap": "1 hour", "aggregates": {"n": "sum(page)"}},
        "READY002",
        ("aggregates", "n"),
    ),
    "last of maps": (
        "sessionize",
        {"time": "at", "gap": "1 hour", "aggregates": {"n": "last(tags)"}},
        "READY002",
        ("aggregates", "n"),
    ),
    "a name twice": (
        "sessionize",
        {"time": "at", "gap": "1 hour", "aggregates": {"User": "last(page)"}},
        "READY003",
        ("aggregates", "User"),
    ),
    "velocity of texts": ("velocity", {"time": "at", "spans": ["1 hour"], "sums": ["page"]}, "READY002", ("sums", 0)),
    "rank by a map": ("top_n", {"n": 2, "by": "tags"}, "READY002", ("by",)),
    "rank by nothing": ("top_n", {"n": 2, "by": "pages"}, "READY001", ("by",)),
}


@pytest.mark.parametrize(("word", "options", "code", "keys"), BAD_COLUMNS.values(), ids=BAD_COLUMNS)
def test_a_column_that_does_not_fit_is_told_at_its_option(word, options, code, keys):
    with pytest.raises(Fault) as raised:
        READY_MADE[word].model_validate(options).processor(CLICKS, ["user"])
    assert (raised.value.code, raised.value.keys) == (code, ("process", "options", *keys))


ROWS = "user at sent page spent clicks load tags day"
GOOD = {
    "sessionize": (
        {"time": "at", "gap": "1 hour", "aggregates": {"a": "Sum( spent )", "b": "min(load)", "c": "count(tags)"}},
        "user session_start session_end events:bigint a:decimal(18,2) b:double c:bigint",
    ),
    "velocity": (
        {"time": "at", "spans": ["1 minute", "90m"], "sums": ["clicks"]},
        f"{ROWS} count_1_minute:bigint sum_clicks_1_minute:bigint count_90m:bigint sum_clicks_90m:bigint",
    ),
    "top_n": ({"n": 2, "by": "page"}, "user rank:int at sent page spent clicks load tags day"),
    "last_seen": (
        {"absent_after": "1 hour", "clock": "processing_time"},
        f"{ROWS} status:string status_at:timestamp away_since:timestamp",
    ),
}


@pytest.mark.parametrize("word", WORDS)
def test_each_knows_its_columns(word):
    options, wanted = GOOD[word]
    found = READY_MADE[word].model_validate(options).output(CLICKS, ["User"])
    assert not any(field.metadata for field in found)
    columns = [column.partition(":") for column in wanted.split()]
    assert found.names == [name for name, _, _ in columns]
    assert [found[name].dataType.simpleString() for name, _, kind in columns if kind] == [
        kind for _, _, kind in columns if kind
    ]


@pytest.mark.parametrize("word", WORDS)
def test_workers_need_not_have_penstock(word, tmp_path):
    made = READY_MADE[word].model_validate(GOOD[word][0]).processor(CLICKS, ["user"])
    (tmp_path / "processor").write_bytes(cloudpickle.dumps(made))
    worker = (
        "import sys; sys.modules['penstock'] = None\n"
        "from pyspark import cloudpickle\n"
        f"made = cloudpickle.loads(open({str(tmp_path / 'processor')!r}, 'rb').read())\n"
        "print(type(made).__name__, made.handleInputRows is not None)"
    )
    done = subprocess.run([sys.executable, "-c", worker], capture_output=True, text=True, check=False)
    assert done.stdout.split() == [type(made).__name__, "True"], done.stderr


def test_python_says_the_same_as_yaml(read):
    in_python = Pipeline("visits")
    in_python.source("clicks", sources.Rate(watermark={"column": "timestamp", "delay": "10 minutes"}))
    options = {"time": "timestamp", "gap": "30 minutes"}
    in_python.process("made", of="clicks", key=["value"], with_="sessionize", options=options)
    in_python.sink("out", sinks.Console(), of="made")
    assert in_python.build() == read(pipeline("sessionize", "time: timestamp\ngap: 30 minutes"))


def test_a_mistake_in_python_is_one_problem_at_the_call():
    in_python = Pipeline("visits")
    with pytest.raises(UserError) as raised:
        in_python.process("made", of="clicks", key=["value"], with_="sessionize", options={"time": "at", "gap": "soon"})
    (problem,) = raised.value.problems
    assert problem.where.file.endswith("test_options.py")
    assert "`soon` is not a duration" in problem.message
