"""Small files on any file system that Hadoop knows, with the credentials that Spark has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock import spark_internals
from penstock.storage.storage import Entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopStorage:
    """`s3a://`, `hdfs://`, `abfss://` and the like, through Spark's own Hadoop client."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._conf = spark_internals.hadoop_conf(spark)

    def exists(self, path: str) -> bool:
        with _as_os_error():
            return bool(self._system(path).globStatus(self._path(path)))

    def is_file(self, path: str) -> bool:
        status = self._status(path)
        return status is not None and bool(status.isFile())

    def entries(self, folder: str) -> list[Entry]:
        status = self._status(folder)
        if status is None or status.isFile():
            return []
        with _as_os_error():
            found = [_entry(status) for status in self._system(folder).listStatus(self._path(folder))]
            return sorted(found, key=lambda entry: entry.name)

    def read_text(self, path: str) -> str:
        return self.read_bytes(path).decode("utf-8")

    def read_bytes(self, path: str) -> bytes:
        with _as_os_error():
            stream = self._system(path).open(self._path(path))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write_text(self, path: str, text: str) -> None:
        content = bytearray(text.encode("utf-8"))
        with _as_os_error():
            target = self._path(path)
            self._system(path).mkdirs(target.getParent())
            stream = spark_internals.atomic_stream(self._spark, target, self._conf)
            try:
                stream.write(content)
            except BaseException:
                stream.cancel()
                raise
            stream.close()

    def rename(self, old: str, new: str) -> None:
        with _as_os_error():
            system, target = self._system(old), self._path(new)
            if system.exists(target):
                raise FileExistsError(f"{new} is there already")  # Hadoop would move `old` into it
            system.mkdirs(target.getParent())
            if not system.rename(self._path(old), target):
                raise OSError(f"{old} could not be renamed to {new}")

    def delete(self, path: str) -> None:
        with _as_os_error():
            self._system(path).delete(self._path(path), True)

    def make_folder(self, path: str) -> None:
        with _as_os_error():
            self._system(path).mkdirs(self._path(path))

    def remove(self, path: str) -> None:
        with _as_os_error():
            self._system(path).delete(self._path(path), True)

    def _status(self, path: str) -> Any:
        """What is at a path; None when nothing is."""
        try:
            with _as_os_error():
                return self._system(path).getFileStatus(self._path(path))
        except FileNotFoundError:
            return None

    def _path(self, path: str) -> Any:
        return spark_internals.hadoop_path(self._spark, path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._conf)


class _as_os_error:  # noqa: N801 - reads as a phrase: `with _as_os_error():`
    """Turns what the JVM raises into OSError, so that callers need not know about the JVM."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        java = spark_internals.java_exception(error)
        if java is not None:
            said = str(java.toString())
            missing = said.startswith("java.io.FileNotFoundException")
            raise (FileNotFoundError(said) if missing else OSError(said)) from None


def _entry(status: Any) -> Entry:
    path = status.getPath()
    return Entry(path.getName(), path.toString(), status.isDirectory(), status.getLen(), status.getModificationTime())
