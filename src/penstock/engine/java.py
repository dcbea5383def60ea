"""The Java that Spark runs on: where it is, and whether it is new enough."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.cache import Remembered
from penstock.problems import Problem, UserError

OLDEST_MAJOR = 17
INSTALL = (
    f"install Java {OLDEST_MAJOR} (`apt-get install openjdk-{OLDEST_MAJOR}-jre-headless`, or Java {OLDEST_MAJOR} from "
    "the system's packages), or set JAVA_HOME to one that is installed"
)


@dataclass(frozen=True)
class Java:
    """A Java that was started and is new enough for Spark."""

    path: Path
    major: int
    identity: str = ""
    """The folder, build and version of this Java. Empty when its folder has no `lib/modules`, as behind a script."""


def find_java(environ: Mapping[str, str]) -> Path | None:
    """The `java` that Spark would start: JAVA_HOME's when that is set, else the first on PATH."""
    # Spark's launcher never falls back from JAVA_HOME to PATH, so neither do we.
    home = environ.get("JAVA_HOME")
    folders = str(Path(home, "bin")) if home else environ.get("PATH", "")
    found = shutil.which("java", path=folders)
    return Path(found).absolute() if found else None


def parse_major(version_output: str) -> int | None:
    """The major version in what `java -version` prints; `1.8` counts as 8. None when there is no version in it."""
    version = re.search(r'version "(?:1\.)?(\d+)', version_output)
    return int(version[1]) if version else None


def require_java(environ: Mapping[str, str]) -> Java:
    """The Java to run Spark on, or a UserError: ENGINE001 when there is none, ENGINE002 when it is too old."""
    path = find_java(environ)
    if path is None:
        home = environ.get("JAVA_HOME")
        looked = f"JAVA_HOME is `{home}`, where there is no `bin/java`" if home else "no `java` is on the PATH"
        raise UserError(Problem(code="ENGINE001", message=f"Spark needs Java, and {looked}", fix=INSTALL))
    installed = _installed(path)
    version_output = _version(path, installed, environ)
    major = parse_major(version_output)
    if major is None:
        # macOS ships a `java` that only says that Java is not installed.
        said = version_output.strip().partition("\n")[0] or "nothing"
        raise UserError(
            Problem(code="ENGINE001", message=f"`{path}` is not a working Java: it said `{said}`", fix=INSTALL)
        )
    if major < OLDEST_MAJOR:
        raise UserError(
            Problem(
                code="ENGINE002",
                message=f"Spark needs Java {OLDEST_MAJOR} or newer, and `{path}` is Java {major}",
                fix=INSTALL,
            )
        )
    return Java(path, major, f"{installed} {version_output}" if installed else "")


def _installed(java: Path) -> str:
    """What changes when another Java is installed at this place."""
    home = java.resolve().parent.parent
    try:
        modules = (home / "lib" / "modules").stat()
    except OSError:
        return ""
    return f"{home} {modules.st_size} {modules.st_mtime_ns}"


def _version(java: Path, installed: str, environ: Mapping[str, str]) -> str:
    """What `java -version` prints. A process start for each command is saved by keeping it."""
    if not installed:
        return _run_version(java, environ)
    memory = Remembered("java", most=20)
    said = memory.get(installed)
    if not isinstance(said, str):
        said = _run_version(java, environ)
        if parse_major(said):
            memory.put(installed, said)
    return said


def _run_version(java: Path, environ: Mapping[str, str]) -> str:
    try:
        ran = subprocess.run(
            [java, "-version"], env=dict(environ), capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return ran.stderr + ran.stdout
