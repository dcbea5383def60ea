"""The user's own StreamingQueryListeners hear of the queries."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sources.conftest import wait_for

pytestmark = pytest.mark.spark

LISTENERS = """
import json
from pathlib import Path

from pyspark.sql.streaming import StreamingQueryListener


class Heard(StreamingQueryListener):
    by = "project"

    def write(self, **event):
        with Path(__file__).with_name("heard.jsonl").open("a") as file:
            file.write(json.dumps({"by": self.by} | event) + "\\n")

    def onQueryStarted(self, event):
        self.write(event="started", id=str(event.id))

    def onQueryProgress(self, event):
        self.write(event="progress", id=str(event.progress.id), rows=event.progress.numInputRows)

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        self.write(event="terminated", id=str(event.id))


class HeardByPipeline(Heard):
    by = "pipeline"


def not_a_listener():
    return 7
"""
COPY = """
    pipeline: {name}
    latency: low
    listeners: [{listeners}]
    sources: {{lines: {{type: files, path: in, format: text}}}}
    sinks: {{out: {{of: lines, type: spark, format: noop}}}}
"""


def heard(root: Path) -> list[dict]:
    file = root / "heard.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.covers("query.listener")
def test_listeners_of_the_project_hear_of_all_and_those_of_a_pipeline_of_its_own(project_at, run_once):
    root = project_at(
        COPY.format(name="with_its_own", listeners="'watch:HeardByPipeline'"),
        COPY.format(name="without", listeners=""),
        files={"watch.py": LISTENERS, "in/1.txt": "a\nb\n"},
        settings="name: heard\nlisteners: ['watch:Heard']\n",
    )
    result = run_once(root)
    assert result.problems == ()
    ids = {query.pipeline: query.id for query in result.queries}
    # Spark tells its listeners in a thread of its own.
    wait_for(lambda: [event["event"] for event in heard(root)].count("terminated") == 3)
    told = [(event["by"], event["event"], event["id"]) for event in heard(root) if event.get("rows") != 0]
    assert sorted(told) == sorted(
        (by, event, ids[pipeline])
        for by, pipeline in (("project", "with_its_own"), ("project", "without"), ("pipeline", "with_its_own"))
        for event in ("started", "progress", "terminated")
    )
    assert {event["rows"] for event in heard(root) if event.get("rows")} == {2}


@pytest.mark.parametrize("listener", ["watch:Missing", "nowhere:Heard", "watch:not_a_listener"])
def test_a_listener_that_cannot_be_added_is_told(project_at, run_once, listener):
    root = project_at(
        COPY.format(name="deaf", listeners=f"'{listener}'"), files={"watch.py": LISTENERS, "in/1.txt": "a\n"}
    )
    (problem,) = run_once(root).problems
    assert problem.code == "SPARK007"
    assert listener in problem.message
