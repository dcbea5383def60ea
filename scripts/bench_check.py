"""Times `penstock check --fast` on fifty pipelines, each a copy of the template's, as a user would run it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from penstock.actions.init import init

PIPELINES, RUNS = 50, 11


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder) / "fifty"
        init(project)
        template = (project / "pipelines" / "orders.yaml").read_text(encoding="utf-8")
        for number in range(1, PIPELINES):
            text = template.replace("pipeline: orders", f"pipeline: orders_{number}").replace("out/", f"out/{number}/")
            (project / "pipelines" / f"orders_{number:02d}.yaml").write_text(text, encoding="utf-8")
        command = [str(Path(sys.executable).with_name("penstock")), "check", "--fast"]
        seconds = []
        for _ in range(RUNS):
            began = time.perf_counter()
            subprocess.run(command, cwd=project, check=True, capture_output=True)
            seconds.append(time.perf_counter() - began)
    shown = f"median {statistics.median(seconds):.3f} s, fastest {min(seconds):.3f} s, slowest {max(seconds):.3f} s"
    print(f"penstock check --fast, {PIPELINES} pipelines, {RUNS} runs: {shown}")


if __name__ == "__main__":
    main()
