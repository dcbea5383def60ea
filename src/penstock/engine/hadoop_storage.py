"""Small files on any file system that Hadoop knows, with the credentials that Spark has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.storage import Entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class HadoopStorage:
    """`s3a://`, `hdfs://`, `abfss://` and the like, through Spark's own Hadoop client."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._conf = spark._jsparkSession.sessionState().newHadoopConf()

    def exists(self, path: str) -> bool:
        with _as_os_error():
            return bool(self._system(path).globStatus(self._path(path)))

    def is_file(self, path: str) -> bool:
        with _as_os_error():
            system, target = self._system(path), self._path(path)
            return bool(system.exists(target) and system.getFileStatus(target).isFile())

    def entries(self, folder: str) -> list[Entry]:
        with _as_os_error():
            system, target = self._system(folder), self._path(folder)
            if not system.exists(target):
                return []
            found = [_entry(status) for status in system.listStatus(target)]
            return sorted(found, key=lambda entry: entry.name)

    def read_text(self, path: str) -> str:
        with _as_os_error():
            stream = self._system(path).open(self._path(path))
            try:
                return bytes(stream.readAllBytes()).decode("utf-8")
            finally:
                stream.close()

    def write_text(self, path: str, text: str) -> None:
        with _as_os_error():
            stream = self._system(path).create(self._path(path), True)
            stream.write(bytearray(text.encode("utf-8")))
            stream.close()  # object stores show a file only once it is closed

    def rename(self, old: str, new: str) -> None:
        with _as_os_error():
            system = self._system(old)
            system.mkdirs(self._path(new).getParent())
            if not system.rename(self._path(old), self._path(new)):
                raise OSError(f"{old} could not be renamed to {new}")

    def make_folder(self, path: str) -> None:
        with _as_os_error():
            self._system(path).mkdirs(self._path(path))

    def _path(self, path: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(path)

    def _system(self, path: str) -> Any:
        return self._path(path).getFileSystem(self._conf)


class _as_os_error:  # noqa: N801 - reads as a phrase: `with _as_os_error():`
    """Turns what the JVM raises into OSError, so that callers need not know about the JVM."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        from py4j.protocol import Py4JJavaError

        if isinstance(error, Py4JJavaError):
            raise OSError(str(error.java_exception.toString())) from None


def _entry(status: Any) -> Entry:
    path = status.getPath()
    return Entry(path.getName(), path.toString(), status.isDirectory(), status.getLen(), status.getModificationTime())
