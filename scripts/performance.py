"""Measures what docs/performance.md tells, and writes the figures into it.

`python scripts/performance.py` measures everything, which takes an hour and a half; with names it measures those.
`--write` measures nothing: it writes what was measured last into the page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.bench.measure import Latency, Ratio
from penstock.bench.report import HEADINGS, cells, comparison_texts, further_texts, notes
from penstock.bench.results import Comparison, Line, Run, Summary

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/performance.md"
RESULTS = ROOT / "docs/performance"
NEWEST_SPARK = ".venv/spark-4.3"


@dataclass(frozen=True)
class Measurement:
    """A run of `penstock bench`."""

    name: str
    arguments: str
    newest_spark: bool = False

    @property
    def command(self) -> str:
        prefix = f"PYTHONPATH={NEWEST_SPARK} " if self.newest_spark else ""
        return f"{prefix}penstock bench {self.arguments} --out docs/performance/{self.name}"


MEASUREMENTS = (
    Measurement("overhead", "stateless --contenders floor,tuned,penstock --rounds 10 --starts 2 --warm 60"),
    Measurement("now-and-then", "stateless --contenders pyspark,penstock --rounds 5 --rate 2 --seconds 20"),
    Measurement("throughput", "drain --contenders tuned,penstock --rounds 6 --records 1500000"),
    Measurement("keyed", "keyed-count --contenders pyspark,naive,tuned,penstock --rounds 5 --warm 40"),
    Measurement("realtime", "stateless --contenders floor,realtime,flink --rounds 6 --warm 60"),
    Measurement("realtime-keyed", "keyed-count --contenders realtime,flink --rounds 6 --warm 90", True),
    Measurement("realtime-10k", "stateless --contenders realtime,flink --rounds 6 --warm 120 --rate 10000", True),
    Measurement("boundary", "boundary --contenders realtime --rounds 3 --warm 30 --seconds 20"),
    Measurement("udf", "udf --contenders penstock,flink,flink-tuned --rounds 6 --warm 40"),
)
_BLOCK = re.compile(r"(<!-- measured: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def measure(one: Measurement) -> None:
    """Runs the command as the page tells it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    subprocess.run(["sh", "-c", one.command], cwd=ROOT, env={**os.environ, "PATH": path}, check=False)


def written(page: str) -> str:
    """The page with the figures that were measured last."""
    by_name = {one.name: one for one in MEASUREMENTS}
    return _BLOCK.sub(lambda found: found[1] + _block(by_name[found[2]]) + found[3], page)


def _block(one: Measurement) -> str:
    file = RESULTS / one.name / "results.json"
    parts = [f"```text\n{one.command}\n```\n"]
    if not file.exists():
        return "\n".join([*parts, "Not measured yet.\n"])
    result = json.loads(file.read_text(encoding="utf-8"))
    machine = result["machine"]
    for found in map(_summary, result["workloads"]):
        rows = [HEADINGS, ["---", *["---:"] * (len(HEADINGS) - 1)], *(cells(line) for line in found.lines)]
        parts.append("".join(f"| {' | '.join(row)} |\n" for row in rows))
        said = [*further_texts(found), *comparison_texts(found), *notes(found)]
        parts.append("".join(f"- {text}\n" for text in said))
        if (file.parent / f"{found.workload}.svg").exists():
            parts.append(f"![Latency of {found.workload}](performance/{one.name}/{found.workload}.svg)\n")
    parts.append(f"Spark {machine['spark']}, Python {machine['python']}, {machine['cores']} cores.\n")
    return "\n".join(parts)


def _summary(told: dict[str, Any]) -> Summary:
    def latency(points: dict[str, float] | None) -> Latency | None:
        return Latency(**points) if points else None

    return Summary(
        told["workload"],
        told["title"],
        tuple(Line(**{**line, "latency": latency(line["latency"])}) for line in told["lines"]),
        tuple(Comparison(**{**one, "ratio": Ratio(**one["ratio"])}) for one in told["comparisons"]),
        tuple(told["dropped_rounds"]),
        tuple(Run(**{**run, "latency": latency(run["latency"])}) for run in told["failed"]),
        tuple((name, why) for name, why in told["skipped"]),
    )


if __name__ == "__main__":
    names = sys.argv[1:]
    unknown = set(names) - {one.name for one in MEASUREMENTS} - {"--write"}
    if unknown:
        sys.exit(f"there is no measurement {', '.join(sorted(unknown))}; use {', '.join(o.name for o in MEASUREMENTS)}")
    for one in MEASUREMENTS:
        if one.name in names or not names:
            measure(one)
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
