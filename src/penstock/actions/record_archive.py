"""Records the class-data archive of the JVM. `python -m penstock.actions.record_archive` does it in the foreground."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from penstock.engine import jvm_archive, session
from penstock.engine.java import require_java
from penstock.engine.session import Engine
from penstock.problems import UserError

_PATIENCE_SECONDS = 600


def record() -> Path | None:
    """The archive for the Java and the Spark that are installed, recorded if there is none. None: it cannot be made."""
    shelf = session.archive_shelf(require_java(os.environ), {})
    if shelf is None:
        return None
    with shelf.recording() as draft:
        if draft is None:
            return None  # another process records it
        if found := shelf.find():
            return found
        if _recorded(draft):
            return shelf.take(draft)
        shelf.note_failure()
        return None


def record_in_background(settings: Mapping[str, str]) -> None:
    """Lets a process of its own record an archive if one is missing. For the end of a command: it waits for nothing."""
    try:
        shelf = session.archive_shelf(require_java(os.environ), settings)
    except UserError:
        return
    if shelf is None or jvm_archive.wish(os.environ) != "record" or not shelf.is_wanted:
        return
    nowhere = subprocess.DEVNULL
    command = [sys.executable, "-P", "-m", __name__, "--nice"]
    subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, cwd="/", start_new_session=True)


def _recorded(draft: Path) -> bool:
    """Runs what commands run, on one JVM, and waits until it has written its classes."""
    from penstock.actions.check import check
    from penstock.actions.init import init
    from penstock.actions.run import RunOptions, run
    from penstock.actions.show import show
    from penstock.supervise.stopping import Stop

    with tempfile.TemporaryDirectory(prefix="penstock-archive-") as folder:
        project = Path(folder, "orders")
        init(project)
        engine = session.start("archive", {}, project / ".penstock", brief=True, record_to=draft)
        if engine.jvm is None:
            return False
        shared, process = replace(engine, jvm=None), engine.jvm.process

        def start_engine(*given: object) -> Engine:
            return shared

        try:
            check(project, (), None, start_engine, show_plans=True)
            show(project, "revenue", None, 20, None, start_engine)
            run(project, (), None, RunOptions(once=True), start_engine, Stop(), lambda seen: None, lambda line: None)
        finally:
            engine.close()
            try:
                code = process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                code = process.wait()
    return code == 0 and draft.is_file()


if __name__ == "__main__":
    if "--nice" in sys.argv:
        os.nice(19)
    sys.exit(0 if record() else 1)
