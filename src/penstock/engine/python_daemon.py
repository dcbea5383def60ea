"""Spark's Python daemon, with what workers import already imported: each worker is a fork of it and need not do so.

Spark runs it as a module, in the place of `pyspark.daemon`. A worker that imports pandas and Arrow itself takes half a
second of CPU before its first row.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import site
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

SETTING = "spark.python.daemon.module"
_IMPORTED = ("pyarrow", "pandas", "pyspark.sql.pandas.types", "pyspark.sql.streaming.proto.StateMessage_pb2")


def settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Names this module to a Spark on this machine; nothing, where a Python that Spark starts may not find it."""
    try:
        home = Path(str(distribution("penstock").locate_file(""))).resolve()
    except PackageNotFoundError:
        return {}
    paths = [*site.getsitepackages(), site.getusersitepackages(), *environ.get("PYTHONPATH", "").split(os.pathsep)]
    found = home in {Path(path).resolve() for path in paths if path}
    return {SETTING: __name__} if found and sys.platform == "linux" else {}


def main() -> None:
    from pyspark import daemon

    for name in _IMPORTED:
        with contextlib.suppress(ImportError):  # who has no pandas uses no worker that needs it
            importlib.import_module(name)
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
