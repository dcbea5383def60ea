"""What several test modules share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from threading import Thread
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from penstock.actions.run import RunOptions, RunResult, run
from penstock.checks.every_rule import judge
from penstock.checks.rule import Subject
from penstock.engine import session
from penstock.engine.connectors import available
from penstock.engine.latency import FILE_MANAGER, RENAMING
from penstock.engine.session import Engine
from penstock.engine.spark_versions import minor
from penstock.lakes.catalogs import IcebergCatalog
from penstock.pipeline import from_yaml, project
from penstock.pipeline.model import Pipeline
from penstock.pipeline.yaml_text import parse
from penstock.prepare.needs import StartEngine
from penstock.problems import Problem, UserError, errors_in
from penstock.supervise.query_view import Snapshot
from penstock.supervise.stopping import Stop

if TYPE_CHECKING:
    import psycopg
    from pyspark.sql import SparkSession

    from penstock.engine.broker import Broker
    from tests.postgres import Postgres

os.environ.setdefault("PENSTOCK_JVM_ARCHIVE", "use")  # `make test` records one beforehand; no test starts a recorder
CONNECTORS = ("avro", "delta", "iceberg", "kafka", "local-fs", "postgresql")
"""With a file system that starts no process for each file: a test is mostly small files."""
QUICK_JVM = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Java's second compiler and its concurrent collector cost more CPU than they gain in the minutes of a test run.

Without the second compiler Java keeps only 48 MB of compiled code, throws it away and compiles it again. Classes of
released jars need no verification: a seventh of a test's work is loading them.
"""
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""For a handful of rows, generating and compiling Java code is most of a query's work.

Tests that start `penstock` in a process run with the code that Spark generates, but for the crash points.
"""
Read = Callable[[str], Pipeline]
Judged = Callable[[str], tuple[Problem, ...]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """A pipeline from YAML, in a project at `tmp_path`."""
    return lambda text: from_yaml.from_document(parse(text, "pipeline.yaml"), tmp_path)


@pytest.fixture
def judged(tmp_path: Path, read: Read) -> Judged:
    """All that is wrong with a pipeline's text, whether it is found when it is read or when it is judged."""

    def judged(text: str) -> tuple[Problem, ...]:
        try:
            return judge(Subject(project.bare(tmp_path), read(text)))
        except UserError as error:
            return error.problems

    return judged


pytest_plugins = ["tests.limits"]
_LONG = (
    "sources/test_living.py",
    "test_examples.py",
    "sinks/test_upsert.py",
    "sinks/test_postgres.py",
    "sinks/test_delta.py",
    "cli/test_faults.py",
    "bench/test_workloads.py",
    "models/test_streams.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begins with what takes longest: at the end, no worker waits for another."""
    from tests.limits import PROCESS_FILES

    root = Path(__file__).parents[1]
    files = (*PROCESS_FILES, *(f"tests/{name}" for name in _LONG))
    rank = {root / name: number for number, name in enumerate(files)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file is run by one worker, and all files that start processes by the same one."""
    from xdist.scheduler import LoadFileScheduling

    from tests.limits import PROCESS_FILES

    class OneProcessAtATime(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "processes" if file in PROCESS_FILES else file

    return OneProcessAtATime(config, log)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The one Spark of a test run, with the settings that a local run has."""
    folder = tmp_path_factory.mktemp("engine")
    # Two tries for a task: `local[2]` never retries, and a retried task is what sinks must stand.
    settings = {
        "spark.master": "local[2,4]",
        "spark.driver.memory": "3g",  # one JVM for all tests of a run
        "spark.driver.extraJavaOptions": f"{QUICK_JVM} -Xmn1g -Dderby.system.home={folder}",
        # As where a real-time query is asked for: what its tasks have done so far is told every second.
        "spark.executor.heartbeatInterval": "1s",
        # For tests that use Spark without a query's own session: 200 tasks and state stores take minutes.
        "spark.sql.shuffle.partitions": "2",
        # Delta's default of 50 takes seconds for each commit on two cores.
        "spark.databricks.delta.snapshotPartitions": "2",
        # Hadoop starts a process, often four, for each file that these two write otherwise. One JVM uses each table.
        "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
        FILE_MANAGER: RENAMING,
        # Spark describes each plan for a page that nobody opens; the short description is quicker made.
        "spark.sql.ui.explainMode": "simple",
        # Rows that a test makes are an RDD, as those of a batch are, and not a part of the plan.
        "spark.sql.execution.arrow.localRelationThreshold": "0",
        **INTERPRETED,
    } | IcebergCatalog(warehouse=str(folder / "lake")).settings("lake")
    known = available(minor(session.installed_version()))  # a new Spark may not have them all
    started = session.start("tests", settings, folder, connectors=[name for name in CONNECTORS if name in known])
    with _one_daemon_for_projects_without_modules():
        yield started
    started.close()


@contextmanager
def _one_daemon_for_projects_without_modules() -> Iterator[None]:
    """Spark starts a Python daemon for each path of modules, and keeps it: a second of CPU and 120 MB for each project.

    A project that has modules gets its own, as in a run.
    """
    of_project = Engine.use_modules_of

    def use_modules_of(self: Engine, root: Path) -> None:
        if any(root.rglob("*.py")):
            of_project(self, root)
        else:
            environment: dict[str, str] = self.spark.sparkContext.environment
            environment.pop("PYTHONPATH", None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Engine, "use_modules_of", use_modules_of)
        yield


@pytest.fixture
def spark(engine: Engine) -> SparkSession:
    return engine.spark


@pytest.fixture
def start_engine(engine: Engine) -> StartEngine:
    """Gives the shared Spark to an action, which cannot end it."""
    shared = replace(engine, jvm=None)
    return lambda project, connectors, settings: shared


@pytest.fixture
def project_at(tmp_path: Path) -> Callable[..., Path]:
    """Makes a project of files: `project_at(pipeline_yaml, **{"data/in/a.txt": "…"})`."""

    def made(*pipelines: str, files: dict[str, str] | None = None, settings: str = "name: test\n") -> Path:
        root = tmp_path / "project"
        place(root / "penstock.yaml", settings)
        for number, text in enumerate(pipelines):
            place(root / "pipelines" / f"p{number}.yaml", dedent(text).lstrip())
        for name, text in (files or {}).items():
            place(root / name, text)
        return root

    return made


def place(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def run_once(start_engine: StartEngine) -> Callable[..., RunResult]:
    """Runs a project's pipelines on what is there, as `penstock run --once` does."""

    def run_it(
        root: Path,
        *selection: str,
        once: bool = True,
        for_seconds: float | None = None,
        stop: Stop | None = None,
        on_snapshot: Callable[[Snapshot], None] = lambda snapshot: None,
    ) -> RunResult:
        options = RunOptions(once=once, for_seconds=for_seconds)
        stop = stop or Stop()
        return run(root, selection, None, options, start_engine, stop, on_snapshot, lambda line: None)

    return run_it


@pytest.fixture
def running(run_once: Callable[..., RunResult]) -> Callable[..., AbstractContextManager[None]]:
    """Runs a project's pipelines for as long as the block lasts: `with running(root, "orders"): …`."""

    @contextmanager
    def run_it(root: Path, *selection: str) -> Iterator[None]:
        stop, results = Stop(), list[RunResult]()
        thread = Thread(target=lambda: results.append(run_once(root, *selection, once=False, stop=stop)))
        thread.start()
        try:
            yield
        finally:
            stop.ask()
            thread.join(300)
        assert results, "it did not end when it was asked to"
        assert not errors_in(results[0].problems)

    return run_it


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The one broker of a test run. It makes no topics by itself; its SASL port takes `penstock` with `secret`."""
    from penstock.engine.broker import Broker, Credentials

    folder = tmp_path_factory.mktemp("kafka")
    with Broker(folder, auto_create_topics=False, credentials=Credentials("penstock", "secret")) as broker:
        yield broker


@pytest.fixture
def topic(kafka: Broker) -> Callable[..., str]:
    """Makes a fresh topic and gives its name: `topic(partitions=2)`."""
    from tests.services import create_topic

    def made(partitions: int = 1, **settings: str) -> str:
        name = f"topic-{uuid4().hex[:12]}"
        create_topic(kafka.servers, name, partitions, settings)
        return name

    return made


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The one PostgreSQL of a test run."""
    from tests.postgres import Postgres

    server = Postgres()
    yield server
    server.remove()


@pytest.fixture
def pg(postgres: Postgres) -> Iterator[psycopg.Connection]:
    """A connection to the database, whose schema `public` is empty."""
    import psycopg

    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")
        yield connection
