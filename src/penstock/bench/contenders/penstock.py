"""Penstock: the pipeline in YAML, run by `penstock run`."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

from penstock.bench.contenders.contender import HELD, Contender, Launch, Progress
from penstock.bench.job import Job
from penstock.bench.processes import OUTPUT
from penstock.bench.workloads.workload import Workload
from penstock.query.triggers import Latency

_NO_BOUNDARY = "1 hour"
"""So long no batch ends in a run, with all the time for which it is held."""
_MAIN = "from penstock.cli.main import main; main()"


def pipeline_text(workload: Workload, latency: Latency = "low") -> str:
    """The whole pipeline, with the settings of its one query."""
    trigger = trigger_text(workload, latency)
    chosen = f", trigger: {trigger}" if trigger else ""
    mode = "update" if latency == "realtime" else workload.mode
    return (
        f"pipeline: {workload.query}\nlatency: {latency}\n{workload.pipeline}"
        f"queries: {{{workload.query}: {{mode: {mode}{chosen}}}}}\n"
    )


def trigger_text(workload: Workload, latency: Latency) -> str | None:
    """What the query says of its trigger; None where the word for the latency says enough."""
    if latency == "realtime":
        return f"{{real_time: {workload.boundary or _NO_BOUNDARY}}}"
    return workload.trigger


def write_project(workload: Workload, folder: Path, latency: Latency = "low") -> None:
    """A project with this one pipeline; the files of the workload are there already."""
    files = {
        "penstock.yaml": f"name: bench\nspark: {{spark.network.timeout: {HELD}}}\n",
        f"pipelines/{workload.query}.yaml": pipeline_text(workload, latency),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def environ_of(job: Job) -> dict[str, str]:
    """What the pipeline's references stand for."""
    return {"SERVERS": job.servers, "INPUT": job.input, "OUTPUT": job.output}


def launch(latency: Latency, workload: Workload, job: Job) -> Launch:
    write_project(workload, Path(job.folder), "throughput" if job.drains else latency)
    once = ("--once",) if job.drains else ()
    return Launch((sys.executable, "-c", _MAIN, "run", "--json", *once), environ_of(job))


def no_real_time(workload: Workload) -> str | None:
    if workload.reads != "topic":
        return "Real-Time Mode reads from Kafka alone"
    if workload.trigger:
        return "Real-Time Mode has a trigger of its own"
    if workload.drains:
        return "Real-Time Mode has no end, so it drains nothing"
    if workload.runs_python:
        return "Real-Time Mode takes no Python code"
    if workload.keeps_state:
        from penstock.engine.session import installed_version
        from penstock.engine.spark_versions import minor, versions_with

        able = versions_with("real-time aggregation")
        if minor(installed_version()) not in able:
            return f"Real-Time Mode keeps no state on Spark {installed_version()}, only on {', '.join(able)}"
    return None


def progress(folder: Path) -> Progress | None:
    """From the result that `penstock run --json` ends with."""
    said = (folder / OUTPUT).read_text(encoding="utf-8", errors="replace")
    try:
        (query,) = json.loads(said[said.index("{") :])["queries"]
    except ValueError:  # it was killed, or said something else
        return None
    return Progress(query["batches"], query["milliseconds"]) if query["batches"] else None


LOW = Contender(
    "penstock", "Penstock, `latency: low`, or `throughput` to drain", partial(launch, "low"), progress=progress
)
REAL_TIME = Contender("realtime", "Penstock, `latency: realtime`", partial(launch, "realtime"), cannot=no_real_time)
