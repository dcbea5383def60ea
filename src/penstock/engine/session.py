"""The only owner of Spark: one JVM per process, one session per query."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from penstock import spark_internals
from penstock.engine import connectors as connector_jars
from penstock.engine import jvm_archive, jvm_options, python_daemon
from penstock.engine.java import Java, require_java
from penstock.engine.jvm import launch
from penstock.engine.resolve import FILE_SYSTEM
from penstock.engine.spark_versions import minor, spark_version
from penstock.notation.masters import MASTER, is_one_machine
from penstock.notation.paths import is_local
from penstock.problems import Problem, UserError
from penstock.spark_internals import JavaError, Jvm, JvmError
from penstock.storage.hadoop import HadoopStorage
from penstock.storage.storage import LocalStorage, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
_CONSOLE_SECONDS = 10
_LISTS = {
    "spark.jars": ",",
    "spark.sql.extensions": ",",
    "spark.driver.extraJavaOptions": " ",
}
"""Settings of ours that are joined with the user's, and by what. Of any other, the user's wins."""
_FILES = "spark.hadoop.fs.file.impl"
_LAUNCH = ("spark.driver.", "spark.master", "spark.app.name", "spark.jars", "spark.submit.", _FILES)
"""What the JVM must know when it is launched. Nothing else goes onto its command line, where all users can read it."""
_RETAINED = {
    # Each batch and each restart would leave its listing of files there, which nothing looks at again.
    "spark.sql.hive.filesourcePartitionFileCacheSize": "0",
    # What Spark keeps for its pages: with its defaults, about a hundred megabytes that a run of hours fills.
    "spark.sql.ui.retainedExecutions": "200",
    "spark.ui.retainedJobs": "200",
    "spark.ui.retainedStages": "200",
    "spark.ui.retainedTasks": "5000",
}
"""A run lasts for months: what Spark keeps of batches that are done is kept short."""
TIME_ZONE, UTC = "spark.sql.session.timeZone", "UTC"
"""How text without a zone becomes a timestamp, and what everything runs with unless a setting says otherwise."""
_NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")


@dataclass
class Engine:
    """A running Spark. `close()` ends it, if it was started here."""

    spark: SparkSession
    log: Path | None = None
    jvm: Jvm | None = None
    """The process that `close()` ends; None where somebody else started it."""
    _brief: bool = False
    _console: list[Callable[[str], None]] = field(default_factory=list)
    _marks: dict[str, threading.Event] = field(default_factory=dict)

    @property
    def cores(self) -> int:
        return int(self.spark.sparkContext.defaultParallelism)

    @property
    def version(self) -> str:
        return self.spark.version

    @cached_property
    def quick_files(self) -> bool:
        """Does a file on the local disk cost no process? Hadoop's own file system starts one for most that it does."""
        return self.is_local and spark_internals.file_system_class(self.spark) == connector_jars.QUICK_FILES

    @property
    def is_local(self) -> bool:
        return is_one_machine(str(self.spark.sparkContext.master))

    def session(self, settings: Mapping[str, str], again: SparkSession | None = None) -> SparkSession:
        """A session of its own: its settings and views are seen by one query only.

        `again`: the session that the query had before. Spark never lets go of all that belongs to a session, so a query
        that restarts keeps its own, with its settings as new.
        """
        from pyspark.errors import AnalysisException

        session = again or self.spark.newSession()
        if again is not None:
            again.sql("RESET")
        for key, value in settings.items():
            try:
                session.conf.set(key, value)
            except AnalysisException as error:
                if error.getCondition() != "CANNOT_MODIFY_STATIC_CONFIG":
                    raise
                # It belongs to the process, which has it already.
        return session

    def storage(self, path: str) -> Storage:
        return LocalStorage() if is_local(path) else HadoopStorage(self.spark)

    def use_modules_of(self, root: Path) -> None:
        """Lets the workers import the project's modules, as the driver does."""
        context: Any = self.spark.sparkContext
        context.environment["PYTHONPATH"] = str(root)
        if not self.is_local:
            for archive in _zipped_modules(root):
                context.addPyFile(str(archive))

    @contextlib.contextmanager
    def console_to(self, show: Callable[[str], None]) -> Iterator[None]:
        """Hands every line that the JVM prints, a console sink's for one, to `show`: the last one before it ends."""
        self._console.append(show)
        try:
            yield
        finally:
            self._await_console()
            self._console.remove(show)

    def close(self) -> None:
        if self.jvm is None:
            return  # not ours to stop
        process = self.jvm.process
        if self._brief and process.stdin:
            process.stdin.close()  # the JVM sees it, cleans up and ends; nobody needs to wait for that
            self.jvm.forget()
            return
        with contextlib.suppress(Exception):  # a JVM that has died cannot be stopped, and need not be
            self.spark.stop()
        _end(process, self.jvm)

    def _pump(self, stream: Any) -> None:
        for line in iter(stream.readline, b""):
            text = line.decode("utf-8", "replace").rstrip("\n")
            if mark := self._marks.pop(text, None):
                mark.set()
                continue
            for show in tuple(self._console):
                show(text)

    def _await_console(self) -> None:
        """Lets the JVM print a mark, and waits until it has come through the pipe behind everything else."""
        if self.log is None:
            return  # a Spark of somebody else prints elsewhere
        text, mark = f"penstock-{uuid4()}", threading.Event()
        self._marks[text] = mark
        with contextlib.suppress(JvmError, OSError):  # a JVM that is gone has no more to say
            spark_internals.print_line(self.spark, text)
            mark.wait(_CONSOLE_SECONDS)


def start(
    name: str,
    settings: Mapping[str, str],
    folder: Path,
    connectors: Iterable[str] = (),
    on_progress: Callable[[int, int, str], None] | None = None,
    *,
    brief: bool = False,
    record_to: Path | None = None,
) -> Engine:
    """Starts Spark with the given settings of the process, and the jars of `connectors`. Raises UserError.

    What the JVM logs goes to `folder`; nothing of it reaches the terminal. `brief`: it only looks, for seconds; then it
    starts sooner, and `close()` does not wait for its end. `record_to`: it writes a class-data archive as it ends.
    """
    java = require_java(os.environ)
    spark_minor = minor(installed_version())
    spark_version(spark_minor)
    is_here = is_one_machine(settings.get(MASTER, "local"))
    wanted = tuple(sorted({*connectors} - {"local-fs"}))
    if "local-fs" in connectors and is_here and connector_jars.can_be_had("local-fs", spark_minor, java.path):
        wanted = (*wanted, "local-fs")
    jars = connector_jars.ensure(wanted, spark_minor, java.path, on_progress)
    ours = _defaults(name, folder) | connector_jars.settings(wanted) | {"spark.jars": ",".join(map(str, jars))}
    ours["spark.driver.extraJavaOptions"] += f" {_jvm_options(java, settings, brief, record_to)}"
    merged = ours | dict(settings)
    if is_one_machine(merged[MASTER]):
        merged = connector_jars.local_settings(wanted) | python_daemon.settings(os.environ) | merged
        merged = {"spark.driver.host": LOOPBACK, "spark.driver.bindAddress": LOOPBACK} | merged
    for key, joint in _LISTS.items():
        merged[key] = joint.join(filter(None, (ours.get(key), settings.get(key))))
    # The driver opens files before it reads `spark.jars`.
    early = tuple(jar for jar in jars if "local-fs" in jar.name)
    return _launch({key: value for key, value in merged.items() if value}, folder, early, brief)


def _jvm_options(java: Java, settings: Mapping[str, str], brief: bool, record_to: Path | None) -> str:
    words = jvm_options.theirs(settings, os.environ)
    quick = jvm_options.for_seconds(words) if brief else ""
    if record_to is not None:
        return f"{jvm_options.for_recording(record_to)} {quick}"
    shelf = archive_shelf(java, settings)
    return f"{jvm_options.for_archive(words, shelf.find() if shelf else None)} {quick}"


def archive_shelf(java: Java, settings: Mapping[str, str]) -> jvm_archive.Shelf | None:
    """Where the class-data archive for a Spark with these settings is kept; None when it can use none."""
    unfit = jvm_archive.unfit(settings.get("spark.driver.extraClassPath"), os.environ)
    return None if unfit else jvm_archive.shelf(java, os.environ)


def attach(spark: SparkSession) -> Engine:
    """An engine on a Spark that somebody else started, in a notebook for example."""
    spark_version(minor(spark.version))
    return Engine(spark)


def running() -> SparkSession | None:
    """The Spark of this process, if there is one."""
    return spark_internals.running_session() if "pyspark" in sys.modules else None


def installed_version() -> str:
    from importlib.metadata import version

    return version("pyspark")


def _defaults(name: str, folder: Path) -> dict[str, str]:
    return {
        "spark.app.name": name,
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        TIME_ZONE: UTC,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.driver.extraJavaOptions": f'-Dderby.system.home="{folder}"',
        # PySpark would look up the caller of every function of a column, and a pipeline has hundreds of them.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # A plain path means the local disk to Penstock, so it must mean the same to Spark.
        FILE_SYSTEM: "file:///",
        **_RETAINED,
    }


def _launch(settings: Mapping[str, str], folder: Path, early: tuple[Path, ...], brief: bool) -> Engine:
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    if is_one_machine(settings[MASTER]):
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = LOOPBACK  # the Spark UI listens on this address, if it is switched on
    for logger in _NOISY_LOGGERS:
        logging.getLogger(logger).setLevel(logging.CRITICAL)

    log = folder / "spark.log"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log.touch(mode=0o600)  # what Spark logs is not masked
    except OSError as error:
        raise UserError(_cannot_start(f"{error.strerror}: {error.filename}", log)) from None
    on_command_line = {key: value for key, value in settings.items() if key.startswith(_LAUNCH)}
    with log.open("ab") as stderr:
        try:
            launched = launch(on_command_line, early, stderr)
        except OSError as error:
            raise UserError(_cannot_start(str(error), log)) from None
    jvm: Jvm | None = None
    try:
        from pyspark import SparkConf  # while the JVM starts
        from pyspark.sql import SparkSession

        jvm = launched.connect()
        with _own_signal_handlers():
            context = jvm.context(SparkConf().setAll(list(settings.items())))
    except BaseException as error:
        why = _why(error, launched.process)
        _end(launched.process, jvm)
        if isinstance(error, Exception):
            raise UserError(_cannot_start(why, log)) from None
        raise
    context.setLogLevel("WARN")
    for logger in _NOISY_LOGGERS:
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    engine = Engine(SparkSession(context), log, jvm, brief)
    threading.Thread(target=engine._pump, args=(jvm.process.stdout,), daemon=True, name="jvm-console").start()
    return engine


def _end(process: subprocess.Popen[bytes], jvm: Jvm | None) -> None:
    """Lets a JVM end, and PySpark forget it: otherwise each later start in this process would get it again."""
    if jvm is not None:
        try:
            jvm.close()
        except (OSError, JvmError):
            jvm.forget()
    if process.stdin:
        with contextlib.suppress(OSError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=10)


@contextlib.contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Puts back the handler of SIGINT that a new SparkContext replaces by one that cancels all jobs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, ours)


def _cannot_start(why: str, log: Path) -> Problem:
    return Problem("ENGINE007", f"Spark cannot start: {why}", f"mend the setting, or see {log}")


def _why(error: BaseException, process: subprocess.Popen[bytes]) -> str:
    """Why Spark did not start. On some wrong settings, such as a port of its page, Spark ends the whole JVM."""
    if isinstance(error, (ConnectionError, JvmError)) and not isinstance(error, JavaError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            return f"its JVM ended with exit code {process.wait(timeout=10)}"
    return _first_cause(error)


def _first_cause(error: BaseException) -> str:
    java = spark_internals.java_exception(error)
    return str(java.toString()) if java is not None else (str(error) or type(error).__name__).splitlines()[0]


def _zipped_modules(root: Path) -> Iterator[Path]:
    """The project's modules in one archive, for workers on other machines."""
    import tempfile
    import zipfile

    environments = {config.parent for config in root.rglob("pyvenv.cfg")}
    files = [
        file
        for file in root.rglob("*.py")
        if not environments.intersection(file.parents)
        and not any(part.startswith(".") for part in file.relative_to(root).parts)
    ]
    if not files:
        return
    archive = Path(tempfile.mkdtemp(prefix="penstock-")) / f"{root.name or 'project'}.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for file in files:
            zipped.write(file, file.relative_to(root))
    yield archive
