"""Flink SQL through PyFlink, in a virtual environment of its own: what it pins clashes with what Penstock needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from penstock.bench.contenders import flink_job
from penstock.bench.contenders.contender import HELD, Contender, Launch
from penstock.bench.job import Job
from penstock.bench.workloads.workload import FlinkSql, Workload
from penstock.cache import cache_folder
from penstock.engine import connectors
from penstock.engine.java import require_java
from penstock.engine.session import LOOPBACK
from penstock.problems import Problem, UserError

VERSION = "2.3.0"
_CONNECTOR = "flink-kafka"
_PYTHONS = ((3, 9), (3, 12))
_INSTALL_SECONDS = 1_200.0


def launch(further: Mapping[str, str], workload: Workload, job: Job) -> Launch:
    if workload.flink is None:
        raise ValueError(f"{workload.name} has no SQL for Flink")
    told = json.dumps({
        "settings": settings(workload, job) | dict(further),
        "statements": statements(workload.flink, job),
    })  # fmt: skip
    # The client looks at functions in Python too, before `python.files` brings them to the workers.
    return Launch((str(_python()), flink_job.__file__, told), {"PYTHONPATH": job.folder if _modules(workload) else ""})


def settings(workload: Workload, job: Job) -> dict[str, str]:
    """For a fair fight: no waiting for full buffers, and a durable checkpoint now and then."""
    return _python_settings(workload, job) | {
        "pipeline.jars": ";".join(path.as_uri() for path in _jars()),
        "parallelism.default": str(job.partitions),
        "execution.buffer-timeout.interval": "1 ms",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.dir": (Path(job.folder) / "checkpoints").as_uri(),
        "heartbeat.timeout": HELD,
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
    }


def _python_settings(workload: Workload, job: Job) -> dict[str, str]:
    """Where functions in Python are."""
    modules = [str(Path(job.folder) / name) for name in _modules(workload)]
    if not modules:
        return {}
    return {"python.files": ",".join(modules), "python.executable": str(_python())}


def _modules(workload: Workload) -> list[str]:
    return [name for name in workload.files if name.endswith(".py")]


def statements(sql: FlinkSql, job: Job) -> list[str]:
    """Both tables, and the job between them."""
    reading = {
        "connector": "kafka",
        "topic": job.input,
        "properties.bootstrap.servers": job.servers,
        "properties.group.id": "flink",
        "scan.startup.mode": "earliest-offset",
        "format": "json",
    }
    if job.drains:
        reading["scan.bounded.mode"] = "latest-offset"
    writing = {"topic": job.output, "properties.bootstrap.servers": job.servers}
    if sql.key:
        writing |= {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    else:
        writing |= {"connector": "kafka", "format": "json"}
    key = f", PRIMARY KEY ({sql.key}) NOT ENFORCED" if sql.key else ""
    return [
        f"CREATE TABLE records ({sql.records}) WITH ({_options(reading)})",
        f"CREATE TABLE results ({sql.results}{key}) WITH ({_options(writing)})",
        *sql.first,
        f"INSERT INTO results {sql.insert}",
    ]


def cannot(workload: Workload) -> str | None:
    return None if workload.flink else "this workload has no SQL for Flink"


def no_python(workload: Workload) -> str | None:
    return cannot(workload) or (None if _modules(workload) else "without functions in Python it is the same as `flink`")


def prepare() -> None:
    """Installs Flink once. UserError BENCH004 when it cannot be had, and what `connectors.ensure` raises."""
    _jars()
    folder = _folder()
    stamp = folder / ".installed"
    if stamp.exists():
        return
    if not _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1]:
        raise _not_had(f"it needs Python 3.9 to 3.12, and this is {sys.version_info[0]}.{sys.version_info[1]}")
    commands: tuple[tuple[str | Path, ...], ...] = (
        (sys.executable, "-m", "venv", folder),
        (_python(), "-m", "pip", "install", "--quiet", f"apache-flink=={VERSION}"),
    )
    for command in commands:
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
        except subprocess.CalledProcessError as error:
            said = error.stderr.strip().splitlines()
            raise _not_had(said[-1] if said else f"code {error.returncode}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _not_had(str(error)) from error
    stamp.touch()


def _not_had(why: str) -> UserError:
    return UserError(Problem("BENCH004", f"Flink {VERSION} could not be installed: {why}", "leave `flink` out"))


def _jars() -> tuple[Path, ...]:
    return connectors.ensure([_CONNECTOR], connectors.WITHOUT_SPARK, require_java(os.environ).path)


def _folder() -> Path:
    return cache_folder() / f"flink-{VERSION}"


def _python() -> Path:
    return _folder() / "bin" / "python"


def _options(options: dict[str, str]) -> str:
    return ", ".join(f"'{key}' = '{value}'" for key, value in options.items())


SQL = Contender("flink", f"Flink {VERSION} SQL through PyFlink", partial(launch, {}), cannot, prepare)
TUNED = Contender(
    "flink-tuned",
    "the same, with functions in Python called every 10 ms",
    # By default rows wait a second for them, or for a thousand others.
    partial(launch, {"python.fn-execution.bundle.time": "10"}),
    no_python,
    prepare,
)
