"""What somebody hears who asks for `async_progress` and cannot have it: one cause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.checks.every_rule import judge
from penstock.checks.rule import Subject
from penstock.pipeline import project
from penstock.problems import errors_in
from penstock.query.async_progress import CACHE
from tests.conftest import Judged, Read

KAFKA = "type: kafka, servers: localhost:9092"
ORDERS = f"orders: {{{KAFKA}, topics: [orders], format: raw}}"
OUT = f"out: {{of: orders, {KAFKA}, topic: copies}}"
TEXT = """
pipeline: quick
sources: {SOURCE}
STEPS
sinks: {SINKS}
queries: {QUERY: SETTINGS}
"""
MISTAKES = {
    "another sink": ({"SINKS": "out: {of: orders, type: console}"}, "ASYNC002", "`out` is no Kafka topic (console)"),
    "several sinks": (
        {"SINKS": f"{OUT}, more: {{of: orders, {KAFKA}, topic: more}}"}, "ASYNC002", "several sinks: `out`, `more`",
    ),
    "a batch's own SQL": (
        {"SINKS": OUT.replace("topic", 'batch_sql: "SELECT value FROM batch", topic')}, "ASYNC002", "`batch_sql`",
    ),
    "files that are judged batch by batch": (
        {"SOURCE": "orders: {type: files, path: in, format: json, on_new_columns: fail}"},
        "ASYNC002", "source `orders` (files)",
    ),
    "state": (
        {"STEPS": 'steps: {values_seen: {sql: "SELECT DISTINCT value FROM orders"}}', "QUERY": "values_seen",
         "SINKS": OUT.replace("of: orders", "of: values_seen"), "SETTINGS": "{mode: update, async_progress: true}"},
        "ASYNC001", "`values_seen` has a DISTINCT",
    ),
    "an end": ({"SETTINGS": "{trigger: once, async_progress: 1 second}"}, "ASYNC003", "`once`"),
    "real time": (
        {"SETTINGS": "{latency: realtime, mode: update, async_progress: true}"}, "ASYNC003", "`real_time 5 minutes`",
    ),
    "continuous": (
        {"SETTINGS": "{trigger: {continuous: 1 second}, async_progress: true}"}, "ASYNC003", "`continuous 1 second`",
    ),
    "no cache": (
        {"SETTINGS": f"{{async_progress: true, spark: {{{CACHE}: false}}}}"},
        "ASYNC004", f"`{CACHE}` is off",
    ),
    "no duration": ({"SETTINGS": "{async_progress: soon}"}, "SPEC009", "nor a duration"),
}  # fmt: skip


def text_with(changed: dict[str, str]) -> str:
    text = TEXT
    defaults = {"SOURCE": ORDERS, "STEPS": "", "SINKS": OUT, "QUERY": "orders", "SETTINGS": "{async_progress: true}"}
    for word, default in defaults.items():
        text = text.replace(word, changed.get(word, default))
    return text


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_problem_names_the_cause(judged: Judged, mistake: str) -> None:
    changed, code, cause = MISTAKES[mistake]
    found = errors_in(judged(text_with(changed)))
    assert [problem.code for problem in found] == [code]
    assert cause in found[0].message


@pytest.mark.parametrize(
    ("settings", "spark", "codes"),
    [
        ("{async_progress: true}", "4.1", ["ASYNC004"]),
        (f"{{async_progress: true, spark: {{{CACHE}: true}}}}", "4.1", []),
        ("{async_progress: false}", "4.1", []),
        ("{latency: low}", "4.1", []),
        ("{latency: realtime}", "4.2", []),
        ("{latency: realtime}", "4.3", ["ASYNC004"]),
    ],
    ids=["asked for", "the query's own wins", "not wanted", "low does without", "real time", "real time from 4.3 on"],
)
def test_no_cache_in_the_project(read: Read, tmp_path: Path, settings: str, spark: str, codes: list[str]) -> None:
    without_cache = replace(project.bare(tmp_path), spark={CACHE: False})
    subject = Subject(without_cache, read(text_with({"SETTINGS": settings})), spark=spark)
    assert [problem.code for problem in errors_in(judge(subject))] == codes


@pytest.mark.parametrize("value", ["true", "false", "500 ms", "0 seconds"])
def test_what_can_be_had_is_let_through(judged: Judged, value: str) -> None:
    assert not errors_in(judged(text_with({"SETTINGS": f"{{async_progress: {value}}}"})))


@pytest.mark.parametrize("sink", ["type: console", "type: delta, path: out"])
def test_false_is_right_everywhere(judged: Judged, sink: str) -> None:
    changed = {"SINKS": f"out: {{of: orders, {sink}}}", "SETTINGS": "{async_progress: false}"}
    assert not errors_in(judged(text_with(changed)))
