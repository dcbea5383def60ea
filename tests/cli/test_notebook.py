"""A pipeline in a real Jupyter kernel: defined, looked at, checked, started, awaited and stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.conftest import place

pytestmark = pytest.mark.spark

CELLS = {
    "declare": """
from penstock import Pipeline, sinks, sources

pipeline = Pipeline("words", latency="low")
pipeline.source("lines", sources.Files(path="in", format="text"))

@pipeline.step()
def counts(lines):
    return lines.groupBy("value").count()

pipeline.sink("table", sinks.Memory(), of="counts")
pipeline.query("counts", mode="complete")
pipeline""",
    "check": "pipeline.check()",
    "show": 'pipeline.show("counts")',
    "kept": "from penstock.engine import shared_spark; kept = shared_spark.shared.engine; kept is not None",
    "wrong option": 'sources.Files(pth="in", format="text")',
    "refused": """
import os
os.environ["NO_COLOR"] = "1"
wrong = Pipeline("wrong")
wrong.source("lines", sources.Files(path="in", format="text"))
wrong.sql("broken", "SELECT no_such_column FROM lines")
wrong.sink("out", sinks.Memory(), of="broken")
wrong.start()""",
    "refused check": "wrong.check()",
    "start": "handle = pipeline.start(progress=True)",
    "wait": """
import asyncio, time
deadline = time.monotonic() + 300
while not sum(view.rows_in for view in handle.snapshot.queries) and time.monotonic() < deadline:
    await asyncio.sleep(0.1)
await handle.wait(1)""",
    "used": "shared_spark.shared.engine is kept",
    "handle": "handle",
    "rows": 'sorted(map(tuple, handle.table("table").collect()))',
    "failing": """
failing = Pipeline("failing", latency="low")
failing.source("lines", sources.Files(path="in", format="text"))
failing.sql("numbers", "SELECT CAST(value AS INT) AS number FROM lines")
failing.sink("out", sinks.Memory(), of="numbers")
with failing.start() as failed:
    await failed""",
    "stop": 'handle.stop("counts"); handle.stop(); (handle.is_active, shared_spark.shared.engine)',
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    folder: Path = tmp_path_factory.mktemp("notebook")
    place(folder / "in" / "1.txt", "a\nb\na\n")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in CELLS.values()])
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", allow_errors=True, resources={"metadata": {"path": str(folder)}}
    ).execute()
    return {name: cell["outputs"] for name, cell in zip(CELLS, notebook.cells, strict=True)}


def html_of(outputs: list[dict[str, Any]]) -> str:
    (output,) = [one for one in outputs if "data" in one]
    return str(output["data"]["text/html"])


def errors_of(outputs: list[dict[str, Any]]) -> list[str]:
    (error,) = [one for one in outputs if one["output_type"] == "error"]
    return [line for text in error["traceback"] for line in text.splitlines()]


def test_a_notebook_from_the_first_cell_to_the_last(outputs):
    """One kernel: it costs a start of Python and one of Spark."""
    for name in ("declare", "check", "show", "refused check", "start", "wait", "handle", "rows", "stop"):
        assert [one for one in outputs[name] if one["output_type"] == "error"] == [], name
    graph = html_of(outputs["declare"])
    assert "<svg" in graph
    assert all(f">{name}</text>" in graph for name in ("lines", "counts", "table"))
    assert "none (" in graph  # what a memory sink promises
    assert "no problems" in html_of(outputs["check"])
    assert "<th>count</th>" in html_of(outputs["show"])
    assert "✗" in html_of(outputs["refused check"])
    assert "no_such_column" in html_of(outputs["refused check"])
    progress = html_of(outputs["start"])  # as it was changed last
    assert "words.</span><b>counts</b>" in progress
    assert "■ stopped" in progress
    assert "● running" in html_of(outputs["handle"]) or "○ waiting" in html_of(outputs["handle"])
    assert outputs["rows"][0]["data"]["text/plain"] == "[('a', 2), ('b', 1)]"
    assert outputs["stop"][-1]["data"]["text/plain"] == "(False, None)"
    for name in ("kept", "used"):  # one Spark for all calls
        assert outputs[name][-1]["data"]["text/plain"] == "True"


def test_a_mistake_is_one_problem_and_no_traceback(outputs):
    told = json.dumps([outputs[name] for name in ("wrong option", "refused", "failing")])
    assert "Traceback" not in told
    assert "penstock/" not in told
    refused = errors_of(outputs["refused"])
    number = list(CELLS).index("refused") + 1
    assert refused[0].startswith("error ")
    assert "no_such_column" in refused[0]
    assert refused[1].startswith(f"  In[{number}]:")
    assert refused[2].endswith('│ wrong.sql("broken", "SELECT no_such_column FROM lines")')
    assert refused[3].endswith("^")
    assert refused[4].startswith("  fix: ")
    assert len(refused) == 5
    assert "unknown key `pth`" in errors_of(outputs["wrong option"])[0]
    failing = errors_of(outputs["failing"])
    assert sum(line.startswith("error ") for line in failing) == 1
    assert "The value 'a' of the type" in failing[0]
    assert any(line.startswith("  fix: ") for line in failing)
