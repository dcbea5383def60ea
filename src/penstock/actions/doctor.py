"""Is this machine ready?"""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from penstock.engine import connectors, jvm_archive, spark_versions
from penstock.engine.java import require_java
from penstock.engine.session import LOOPBACK, installed_version
from penstock.problems import UserError

Level = Literal["ok", "warning", "error"]
_LEAST_FREE_GB = 2


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    level: Level
    found: str
    fix: str = ""


@dataclass(frozen=True)
class DoctorResult:
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return all(finding.level != "error" for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}


def doctor(folder: Path, environ: Mapping[str, str] = os.environ) -> DoctorResult:
    """Looks at all that a run needs. Starts no Spark."""
    looks: tuple[Callable[[], Finding], ...] = (
        _python,
        lambda: _java(environ),
        _spark,
        _worker_packages,
        _machine,
        _loopback,
        lambda: _disk(folder),
        _connectors,
        lambda: _archive(environ),
    )
    return DoctorResult(tuple(look() for look in looks))


def _python() -> Finding:
    return Finding("Python", "ok", f"{platform.python_version()} at {sys.executable}")


def _java(environ: Mapping[str, str]) -> Finding:
    try:
        java = require_java(environ)
    except UserError as error:
        return Finding("Java", "error", error.problems[0].message, error.problems[0].fix)
    return Finding("Java", "ok", f"{java.major} at {java.path}")


def _spark() -> Finding:
    try:
        found = installed_version()
        spark_versions.spark_version(spark_versions.minor(found))
    except PackageNotFoundError:
        return Finding("Spark", "error", "pyspark is not installed", "pip install 'pyspark>=4.1,<4.4'")
    except UserError as error:
        return Finding("Spark", "error", error.problems[0].message, error.problems[0].fix)
    return Finding("Spark", "ok", f"pyspark {found}")


def _worker_packages() -> Finding:
    """What Python code in the workers needs: pandas before 3, Arrow, and protobuf for stateful processors."""
    wanted = {"pandas": "pandas", "pyarrow": "pyarrow", "protobuf": "google.protobuf"}
    missing = [package for package, module in wanted.items() if not _has(module)]
    if missing:
        return Finding(
            "Python in workers", "error", f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}"
        )
    if int(version("pandas").split(".")[0]) >= 3:
        return Finding(
            "Python in workers",
            "warning",
            f"pandas {version('pandas')}",
            "Spark wants pandas 2: pip install 'pandas<3'",
        )
    return Finding("Python in workers", "ok", ", ".join(f"{package} {version(package)}" for package in wanted))


def _has(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _machine() -> Finding:
    cores = os.cpu_count() or 1
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    level: Level = "ok" if memory_gb >= 2 else "warning"
    fix = "" if level == "ok" else "use a machine with 2 GB of memory or more"
    return Finding("Machine", level, f"{cores} cores, {memory_gb:.0f} GB of memory", fix)


def _loopback() -> Finding:
    try:
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
    except OSError as error:
        return Finding(
            "Loopback", "error", f"{LOOPBACK} cannot be bound: {error}", "Spark's parts talk to each other there"
        )
    return Finding("Loopback", "ok", LOOPBACK)


def _disk(folder: Path) -> Finding:
    there = next(one for one in (folder.resolve(), *folder.resolve().parents) if one.exists())
    free_gb = shutil.disk_usage(there).free / 1e9
    level: Level = "ok" if free_gb >= _LEAST_FREE_GB else "warning"
    fix = "" if level == "ok" else "free space on this disk: checkpoints and output are written to it"
    return Finding("Disk", level, f"{free_gb:.0f} GB free here", fix)


def _connectors() -> Finding:
    spark = spark_versions.minor(installed_version())
    known = connectors.available(spark)
    cached = [name for name in known if not connectors.missing([name], spark)]
    found = f"{', '.join(cached) or 'none'} cached in {connectors.cache_folder()}"
    others = [name for name in known if name not in cached]
    return Finding("Connectors", "ok", found + (f"; on demand: {', '.join(others)}" if others else ""))


def _archive(environ: Mapping[str, str]) -> Finding:
    """The class-data archive with which Spark starts sooner. A missing one is no fault."""

    def found(text: str) -> Finding:
        return Finding("JVM archive", "ok", text)

    if unfit := jvm_archive.unfit(None, environ):
        return found(f"not used: {unfit}")
    try:
        java = require_java(environ)
    except UserError:
        return found("not used: there is no Java")
    shelf = jvm_archive.shelf(java, environ)
    if shelf is None:
        return found("not used: this Java or the cache folder does not allow it")
    if path := shelf.find():
        size = path.stat().st_size / 1e6
        return found(f"{size:.0f} MB for Java {java.major} and Spark {installed_version()}, in {shelf.folder}")
    if jvm_archive.wish(environ) == "record" and shelf.is_wanted:
        return found("none yet: the next command that starts Spark records one in the background")
    return found("none yet, and none is recorded by itself: `python -m penstock.actions.record_archive` records one")
