"""The page in the docs that tells how often Penstock and Spark agreed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Report = Mapping[str, Any]
"""What `python -m tests.judge` writes: the Spark, and its verdicts."""

SEEDS = (
    ("Session windows in mode `update`", "refused (MODE002): `append` or `complete`"),
    ("Mode `complete` into Kafka, and for code that gets whole batches", "accepted, as long as the query aggregates"),
    ("The memory sink in mode `update`", "accepted"),
    ("`LIMIT` in mode `append`", "accepted; it counts over the query's whole life (LIMIT001). Refused in `update`"),
    ("`SELECT DISTINCT`", "an aggregation over all columns: refused in `append` unless one of them has a watermark"),
    ("Sorting", "accepted in mode `complete` after an aggregation"),
    ("`ROLLUP` and `GROUPING SETS`", "judged as any other aggregation"),
    ("`EXCEPT` of a stream and a static table", "accepted when asked; in `append` its first batch fails (MODE007)"),
    ("`foreach` in Continuous Processing", "one in Python fails when its second epoch begins (CONTINUOUS004)"),
    ("Timers of a processor on event time, without a watermark", "accepted, and they never go off (OPERATION013)"),
)
"""Where books on streaming differ from each other, and what Spark does."""


def page(reports: Sequence[Report]) -> str:
    """The whole page."""
    lines = [
        "# Spark is the judge",
        "",
        "Every combination of operation, output mode, trigger, sink, join and watermark was put before Penstock and",
        "before Spark. Spark was asked twice: its own checker, and, where that accepts, by a start for one batch. They",
        "agree when Penstock refuses what Spark refuses, by a rule with a name, and refuses nothing that Spark runs.",
        "Penstock answered twice too: from the plan that Spark made, and from the text alone, as `check --fast` does.",
        "",
        "`make judge` asks both Sparks and writes this page; `make proof` asks both and compares. `make test` asks the",
        "installed Spark, and starts only what a start decides.",
        "",
    ]
    for report in reports:
        lines += table(report)
    lines += ["## Where Spark differs from what is written about it", "", "| | Spark |", "|---|---|"]
    lines += [f"| {what} | {verdict} |" for what, verdict in SEEDS]
    return "\n".join(lines) + "\n"


def table(report: Report) -> list[str]:
    """What one Spark said, family by family."""
    verdicts = report["verdicts"]
    agreed = sum(verdict["agrees"] for verdict in verdicts)
    lines = [f"## Spark {report['spark']}: agree {agreed} of {len(verdicts)}", ""]
    lines += ["| | cases | Spark refuses | when asked | only at the start | Spark runs |", "|---|---|---|---|---|---|"]
    for family in dict.fromkeys(verdict["family"] for verdict in verdicts):
        of_family = [verdict for verdict in verdicts if verdict["family"] == family]
        stages = Counter(verdict["stage"] for verdict in of_family)
        refused = len(of_family) - stages[""]
        asked = stages["declared"] + stages["asked"]
        lines.append(f"| {family} | {len(of_family)} | {refused} | {asked} | {stages['started']} | {stages['']} |")
    return [*lines, ""]
