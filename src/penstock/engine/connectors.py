"""Connector jars on demand: locked by checksum, fetched once into the user's cache, offline from then on.

Spark's own `spark.jars.packages` resolves at every session start, checks nothing and takes what the network gives.
Here each connector has one lock file for each Spark minor version that names every jar and its sha256. Programs that
run beside Spark, such as a broker for development, are locked in the same way under `WITHOUT_SPARK`.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from penstock import cache
from penstock.problems import Problem, UserError, did_you_mean

IVY_LOG = "ivy.log"
LOCKS = Path(__file__).with_name("connector_locks")
WITHOUT_SPARK = "without_spark"
"""Stands in the place of a Spark minor version for programs in processes of their own."""

QUICK_FILES = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
"""The file system of the connector `local-fs`."""
_EXTENSIONS = "spark.sql.extensions"
SETTINGS_OF_CONNECTOR: Mapping[str, Mapping[str, str]] = {
    "delta": {
        _EXTENSIONS: "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    "iceberg": {_EXTENSIONS: "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"},
    # Hadoop starts a process for each file that it looks at; this file system asks the JVM.
    "local-fs": {"spark.hadoop.fs.file.impl": QUICK_FILES},
}
LOCAL_SETTINGS_OF_CONNECTOR: Mapping[str, Mapping[str, str]] = {
    # After each commit Delta reads the table's log anew, in 50 tasks: on one machine most of the time of a small batch.
    "delta": {"spark.databricks.delta.snapshotPartitions": "2"},
}
"""What a connector gets when Spark runs in one process."""

_OPTIONAL_SECONDS = 10.0
"""How long a start waits for a jar that it can do without. Ivy takes about three to fetch one."""
_TRY_AGAIN_SECONDS = 24 * 3_600.0

Progress = Callable[[int, int, str], None]
"""Called with (done, total, name) when a jar has arrived, once for each jar that had to be fetched."""


@dataclass(frozen=True)
class Coordinate:
    """A jar's name in the registry, written `group:artifact:version`."""

    group: str
    artifact: str
    version: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"


@dataclass(frozen=True)
class LockedJar:
    """One jar and the only content that is accepted for it."""

    coordinate: Coordinate
    sha256: str

    @property
    def file_name(self) -> str:
        return self.coordinate.file_name

    def __str__(self) -> str:
        return f"{self.coordinate} sha256:{self.sha256}"


def parse_lock(text: str) -> tuple[LockedJar, ...]:
    """The jars of a lock file: `group:artifact:version sha256:<hex>` a line, `#` starts a comment line."""
    jars = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            coordinate, checksum = line.split()
            jars.append(LockedJar(Coordinate(*coordinate.split(":")), checksum.removeprefix("sha256:")))
    return tuple(jars)


def available(spark_minor: str) -> tuple[str, ...]:
    """The connectors that are locked for Spark `spark_minor` (such as `4.1`), sorted."""
    return tuple(sorted(path.stem for path in (LOCKS / spark_minor).glob("*.lock")))


def locked_jars(connector: str, spark_minor: str) -> tuple[LockedJar, ...]:
    """The jars of one connector; UserError ENGINE003 when this Spark has no such connector."""
    if connector in available(spark_minor):
        return parse_lock((LOCKS / spark_minor / f"{connector}.lock").read_text(encoding="utf-8"))
    minors = {path.name for path in LOCKS.iterdir()} - {WITHOUT_SPARK}
    elsewhere = sorted(minor for minor in minors if connector in available(minor))
    if elsewhere:
        message = (
            f"the connector `{connector}` does not work with Spark {spark_minor}, only with {', '.join(elsewhere)}"
        )
        fix = f"run on Spark {elsewhere[-1]} (`pip install 'pyspark=={elsewhere[-1]}.*'`)"
    else:
        known = available(spark_minor)
        message = f"there is no connector `{connector}`{did_you_mean(connector, known)}"
        fix = f"use one that Spark {spark_minor} has: {', '.join(known) or 'none'}"
    raise UserError(Problem(code="ENGINE003", message=message, fix=fix))


def local_settings(names: Iterable[str]) -> dict[str, str]:
    """What these connectors want of a Spark that runs in one process."""
    return {key: value for name in names for key, value in LOCAL_SETTINGS_OF_CONNECTOR.get(name, {}).items()}


def settings(connectors: Iterable[str]) -> dict[str, str]:
    """The session settings that these connectors need together; session extensions are joined with commas."""
    joined: dict[str, str] = {}
    for connector in dict.fromkeys(connectors):
        for key, value in SETTINGS_OF_CONNECTOR.get(connector, {}).items():
            joined[key] = f"{joined[key]},{value}" if key == _EXTENSIONS and key in joined else value
    return joined


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the jars live. It may not exist yet."""
    return cache.cache_folder(environ) / "jars"


def missing(connectors: Iterable[str], spark_minor: str) -> tuple[LockedJar, ...]:
    """The jars that `ensure` would have to fetch: those not in the cache, and those garbled there."""
    return _missing(_jars_of(connectors, spark_minor), cache_folder())


def ensure(
    connectors: Iterable[str], spark_minor: str, java: Path, on_progress: Progress | None = None
) -> tuple[Path, ...]:
    """The local jars of these connectors, each verified. Fetches what is missing; starts no process when nothing is.

    UserError ENGINE003 for an unknown connector, ENGINE004 when a jar cannot be had, ENGINE005 when a jar that came
    is not the locked one. Safe to run in several processes at once.
    """
    jars = _jars_of(connectors, spark_minor)
    cache = cache_folder()
    fetch(_missing(jars, cache), cache, java, on_progress)
    return tuple(cache / jar.file_name for jar in jars)


def can_be_had(connector: str, spark_minor: str, java: Path) -> bool:
    """Of a connector that only makes things quicker: are its jars here, or can they be fetched in a few seconds?

    After a failure nobody waits again for a day: a start without a network must not take longer for it.
    """
    jars = _missing(_jars_of((connector,), spark_minor), cache_folder())
    if not jars:
        return True
    tried = cache_folder() / f".{connector}-{spark_minor}-not-fetched"
    with contextlib.suppress(OSError):
        if 0 <= time.time() - tried.stat().st_mtime < _TRY_AGAIN_SECONDS:
            return False
    try:
        fetch(jars, cache_folder(), java, at_most_seconds=_OPTIONAL_SECONDS)
    except UserError:
        with contextlib.suppress(OSError):  # then it is tried again next time
            tried.touch()
        return False
    tried.unlink(missing_ok=True)
    return True


def fetch(
    jars: Sequence[LockedJar],
    cache: Path,
    java: Path,
    on_progress: Progress | None = None,
    at_most_seconds: float = math.inf,
) -> None:
    """Put these jars into `cache`, each whole and verified or not at all; the errors are those of `ensure`."""
    if not jars:
        return
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # Inside the cache, so that each jar can be moved to its place in one atomic step.
        folder = tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache)
    except OSError as error:
        raise _not_had(jars, f"the cache `{cache}` cannot be written ({error.strerror})") from error
    with folder as name:
        coordinates = [jar.coordinate for jar in jars]
        arrived = retrieve(coordinates, Path(name), java, on_progress, at_most_seconds=at_most_seconds)
        intact = [jar for jar in jars if jar.coordinate in arrived and _is_intact(arrived[jar.coordinate], jar)]
        for jar in intact:
            arrived[jar.coordinate].replace(cache / jar.file_name)
        log = Path(name, IVY_LOG).read_text(encoding="utf-8", errors="replace")
    wrong = [jar for jar in jars if jar.coordinate in arrived and jar not in intact]
    if wrong:
        raise UserError(
            Problem(
                code="ENGINE005",
                message=f"what came for {_names(wrong)} is not the locked jar (its sha256 differs); it was deleted",
                fix="fetch again over a network that you trust; if it stays so, the lock file or the registry is wrong",
            )
        )
    if len(arrived) < len(jars):
        not_had = _not_had([jar for jar in jars if jar.coordinate not in arrived], "they could not be fetched")
        not_had.add_note(log)  # Ivy's own words, in the traceback only
        raise not_had


def retrieve(
    coordinates: Sequence[Coordinate],
    folder: Path,
    java: Path,
    on_progress: Progress | None = None,
    stalled_after_seconds: float = 60,
    at_most_seconds: float = math.inf,
) -> dict[Coordinate, Path]:
    """Fetch jars, unverified, to somewhere under the empty `folder`; those that could not be had are left out.

    Runs the Ivy inside PySpark, which logs to `ivy.log` there. No two coordinates may differ in version alone.
    """
    # Relative paths only: Ivy would read a `[` or `$` in the folder's own name as a pattern.
    (folder / "ivy.xml").write_text(ivy_xml(coordinates), encoding="utf-8")
    arguments = ("-cache", "ivy", "-ivy", "ivy.xml", "-types", "jar", "bundle")
    command = (java, "-jar", _ivy_jar(), *arguments)
    wanted = {coordinate.file_name: coordinate for coordinate in coordinates}
    arrived: dict[Coordinate, Path] = {}

    def look() -> None:
        for path in folder.glob("ivy/*/*/*/*.jar"):
            coordinate = wanted.get(path.name)
            if coordinate is not None and coordinate not in arrived:
                arrived[coordinate] = path
                if on_progress is not None:
                    on_progress(len(arrived), len(wanted), path.name)

    with (
        (folder / IVY_LOG).open("wb") as log,
        subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log) as process,
    ):
        try:
            size, grew_at, end = 0, time.monotonic(), time.monotonic() + at_most_seconds
            while process.poll() is None and time.monotonic() < min(grew_at + stalled_after_seconds, end):
                time.sleep(0.05)
                look()
                before, size = size, _size_under(folder)
                grew_at = time.monotonic() if size != before else grew_at
        finally:
            process.kill()
    look()
    return arrived


def ivy_xml(coordinates: Iterable[Coordinate]) -> str:
    """An Ivy module that depends on exactly these jars: none of their dependencies, sources or documentation."""
    dependencies = "".join(
        f"    <dependency org={quoteattr(one.group)} name={quoteattr(one.artifact)} rev={quoteattr(one.version)}"
        ' transitive="false" conf="default-&gt;master"/>\n'
        for one in coordinates
    )
    return (
        '<ivy-module version="2.0">\n'
        '  <info organisation="penstock" module="connectors"/>\n'
        '  <configurations><conf name="default"/></configurations>\n'
        f"  <dependencies>\n{dependencies}  </dependencies>\n"
        "</ivy-module>\n"
    )


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _jars_of(connectors: Iterable[str], spark_minor: str) -> tuple[LockedJar, ...]:
    return tuple(dict.fromkeys(jar for connector in connectors for jar in locked_jars(connector, spark_minor)))


def _missing(jars: Iterable[LockedJar], cache: Path) -> tuple[LockedJar, ...]:
    return tuple(jar for jar in jars if not _is_intact(cache / jar.file_name, jar))


def _is_intact(path: Path, jar: LockedJar) -> bool:
    # Every jar is hashed at every use: about 1 ms for each MB (60 ms for the largest, 1 to 10 ms for the others) is
    # little beside a session's start, and a marker beside the jar would have to be trusted in its place.
    try:
        return sha256_of(path) == jar.sha256
    except OSError:
        return False


def _ivy_jar() -> Path:
    pyspark = find_spec("pyspark")
    jars = sorted(Path(pyspark.origin).parent.glob("jars/ivy-*.jar")) if pyspark and pyspark.origin else []
    if not jars:
        raise UserError(
            Problem(
                code="ENGINE004",
                message="connector jars cannot be fetched, because this PySpark came without Spark's own jars",
                fix="install the full package, `pyspark`, in place of `pyspark-client` or `pyspark-connect`",
            )
        )
    return jars[-1]


def _size_under(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(parent, name).stat().st_size
            except FileNotFoundError:  # Ivy has just renamed a part file to its final name
                continue
    return total


def _names(jars: Iterable[LockedJar]) -> str:
    return ", ".join(f"`{jar.coordinate}`" for jar in jars)


def _not_had(jars: Iterable[LockedJar], reason: str) -> UserError:
    return UserError(
        Problem(
            code="ENGINE004",
            message=f"connector jars are missing, and {reason}: {_names(jars)}",
            fix="run once while online (they are kept), or point PENSTOCK_CACHE at a folder that already holds them",
        )
    )
