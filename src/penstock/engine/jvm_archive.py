"""Class-data archives of the JVM: the classes of Spark, parsed once and mapped into memory by every later start.

A JVM that maps a truncated archive dies, and altered bytes load unnoticed. So the name of an archive holds its size and
checksum, it gets that name only when it is whole, and it is read before each use. Nothing here ever fails a command:
without an archive Spark starts slower.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from penstock import cache
from penstock.engine.java import Java

SETTING = "PENSTOCK_JVM_ARCHIVE"
Wish = Literal["off", "use", "record"]
_KEPT = 3
_LEAST_FREE_BYTES = 2_000_000_000
_RETRY_SECONDS = 7 * 24 * 3600
_CHUNK = 1 << 20


def wish(environ: Mapping[str, str]) -> Wish:
    """`off`: no archive. `use`: one that is there is used, none is recorded. A CI job never records by itself."""
    asked = environ.get(SETTING, "").strip().lower()
    if asked in ("off", "0", "false", "no"):
        return "off"
    return "use" if asked == "use" or environ.get("CI", "").lower() not in ("", "0", "false") else "record"


def spark_home(environ: Mapping[str, str]) -> Path | None:
    """The folder with Spark's `bin` and `jars`: SPARK_HOME when that is set, else the installed package."""
    if home := environ.get("SPARK_HOME"):
        return Path(home)
    package = find_spec("pyspark")
    return Path(package.origin).parent if package and package.origin else None


def unfit(class_path: str | None, environ: Mapping[str, str]) -> str:
    """Why no archive can be used with this `spark.driver.extraClassPath`; empty when one can."""
    if wish(environ) == "off":
        return f"turned off by {SETTING}"
    home = spark_home(environ)
    if home is None or not (home / "jars").is_dir():
        return "Spark's jars are not found"
    if class_path:
        return "`spark.driver.extraClassPath` stands before Spark's own jars"
    if any(environ.get(name) for name in ("SPARK_PREPEND_CLASSES", "SPARK_TESTING")):
        return "SPARK_PREPEND_CLASSES or SPARK_TESTING is set"
    if (conf := Path(environ.get("SPARK_CONF_DIR") or home / "conf")).exists():
        return f"the folder `{conf}` stands before Spark's own jars"
    return ""


@dataclass(frozen=True)
class Shelf:
    """Where the archive for one Java and one Spark is kept, whether or not there is one."""

    folder: Path
    key: str

    @property
    def kept(self) -> Path | None:
        """The archive as it lies there, not yet read."""
        with contextlib.suppress(OSError):
            return next(iter(sorted(self.folder.glob(f"{self.key}.*.jsa"))), None)
        return None

    def find(self) -> Path | None:
        """The archive, if it is whole to the last byte. A damaged one is deleted."""
        path = self.kept
        if path is None:
            return None
        try:
            whole = path.name == self._name(path)
        except OSError:
            return None
        with contextlib.suppress(OSError):  # a cache that may not be written is used all the same
            os.utime(path) if whole else path.unlink()  # by its time the newest are kept
        return path if whole else None

    def take(self, draft: Path) -> Path:
        """Makes a whole archive the one of this key, and deletes what is no longer wanted."""
        path = self.folder / self._name(draft)
        draft.replace(path)
        newest = sorted(self.folder.glob("*.jsa"), key=lambda one: one.stat().st_mtime, reverse=True)
        same = [one for one in newest if one.name.startswith(f"{self.key}.") and one != path]
        for old in (*same, *newest[_KEPT:]):
            old.unlink(missing_ok=True)
        return path

    @property
    def is_wanted(self) -> bool:
        """Should an archive be recorded: is there none, is there room, and did the last attempt not fail?"""
        try:
            failed = time.time() - self._failed.stat().st_mtime < _RETRY_SECONDS
        except OSError:
            failed = False
        there = next((one for one in (self.folder, *self.folder.parents) if one.exists()), None)
        if failed or self.kept or there is None or not os.access(there, os.W_OK):
            return False
        return shutil.disk_usage(there).free > _LEAST_FREE_BYTES

    def note_failure(self) -> None:
        self._failed.touch()

    @contextlib.contextmanager
    def recording(self) -> Iterator[Path | None]:
        """A name to record under, for one process of the machine at a time: the others get None."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "recording.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            for left in self.folder.glob("*.draft"):
                left.unlink(missing_ok=True)  # its recorder has died: the lock was free
            draft = self.folder / f"{os.getpid()}.draft"
            try:
                yield draft
            finally:
                draft.unlink(missing_ok=True)

    @property
    def _failed(self) -> Path:
        return self.folder / f"{self.key}.failed"

    def _name(self, file: Path) -> str:
        size, checksum = 0, 0
        with file.open("rb", buffering=0) as opened:
            while chunk := opened.read(_CHUNK):
                size, checksum = size + len(chunk), zlib.crc32(chunk, checksum)
        return f"{self.key}.{size}.{checksum:08x}.jsa"


def shelf(java: Java, environ: Mapping[str, str]) -> Shelf | None:
    """The place for this Java and Spark's class path: its jars in the order in which the JVM finds them."""
    home, folder = spark_home(environ), cache.cache_folder(environ) / "jvm"
    if home is None or not java.identity or ":" in str(folder) or '"' in str(folder):
        return None  # the JVM would read a colon as the end of a name
    key = hashlib.sha256(java.identity.encode())
    try:
        with os.scandir(home / "jars") as jars:
            for jar in jars:
                found = jar.stat()
                key.update(f"\n{jar.path} {found.st_size} {found.st_mtime_ns}".encode("utf-8", "surrogateescape"))
    except OSError:
        return None
    return Shelf(folder, key.hexdigest()[:32])
