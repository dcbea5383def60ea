"""What somebody hears who asks for `realtime` and cannot have it: one cause, and the nearest word that works."""

from __future__ import annotations

import pytest

from penstock.actions.check import check
from penstock.problems import errors_in

SOURCE = "orders: {type: kafka, servers: localhost:9092, topics: [orders], format: raw, metadata: [timestamp]}"
SINK = "out: {of: OF, type: kafka, servers: localhost:9092, topic: copies}"
TEXT = """
pipeline: quick
latency: realtime
sources: {SOURCE}
STEPS
sinks: {SINK}
"""
MISTAKES = {
    "a Python UDF": (
        {"STEPS": 'functions: {shout: {python: "judged:shout", returns: STRING}}\n'
         "steps: {loud: {sql: SELECT shout(cast(value AS STRING)) AS value FROM orders}}"},
        "loud", "REALTIME005", "calls Python",
    ),
    "a session window": (
        {"STEPS": "steps: {visits: {sql: \"SELECT cast(count(*) AS STRING) AS value FROM orders"
         " GROUP BY session_window(_timestamp, '5 minutes'), value\"}}"},
        "visits", "REALTIME004", "session",
    ),
    "a Delta sink": (
        {"SINK": "out: {of: orders, type: delta, path: out}"}, "orders", "REALTIME003", "(delta)",
    ),
    "too few cores": (
        {"SOURCE": SOURCE.replace("topics: [orders]", f"assign: {{WIDE: {[*range(65)]}}}")}, "orders",
        "REALTIME008", "65 cores",
    ),
    "a limit for a batch": (
        {"SOURCE": SOURCE.replace("raw,", "raw, max_offsets_per_trigger: 9, min_partitions: 2,")}, "orders",
        "REALTIME009", "`max_offsets_per_trigger` and `min_partitions`",
    ),
    "a source that is no stream of Kafka": (
        {"SOURCE": "orders: {type: rate}", "SINK": "out: {of: orders, type: console}"}, "orders",
        "REALTIME002", "(rate)",
    ),
}  # fmt: skip


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_problem_names_the_cause_and_what_works(project_at, start_engine, kafka, topic, mistake, fast):
    changed, of, code, cause = MISTAKES[mistake]
    text = TEXT
    for word, default in (("SOURCE", SOURCE), ("STEPS", ""), ("SINK", SINK)):
        text = text.replace(word, changed.get(word, default))
    text = (
        text.replace("OF", of)
        .replace("localhost:9092", kafka.servers)
        .replace("[orders]", f"[{topic()}]")
        .replace("copies", topic())
    )
    if "WIDE" in text:
        text = text.replace("WIDE", topic(partitions=65))
    root = project_at(text, files={"judged.py": "def shout(text):\n    return text.upper()\n"})
    found = errors_in(check(root, (), None, None if fast else start_engine).problems)
    assert [problem.code for problem in found] == [code]
    problem = found[0]
    assert cause in problem.message
    assert "`latency: low`" in problem.fix
    assert problem.where is not None
