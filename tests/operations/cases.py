"""Operations as a table: each case is a step, and the rows that must come out. All cases of a table run at once."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent

from penstock.supervise.query_view import QueryView
from tests.models.collected import held

SETTINGS = "name: test\nspark: {spark.sql.shuffle.partitions: 1}\nstate: {store: hdfs}\n"
"""A project whose queries open few stores, and open them quickly: what comes out is the same."""


@dataclass(frozen=True)
class Case:
    """A step in SQL, or in other keys, and its rows: texts, one for each row, with the columns between blanks."""

    name: str
    sql: str
    rows: Sequence[str]
    covers: tuple[str, ...] = ()
    settings: str = ""
    """What `queries:` has for it, in YAML."""
    late: tuple[int, int] | None = None
    """Rows and groups that come too late."""
    before: dict[str, str] = field(default_factory=dict)
    """Steps that it is made from: a SELECT, or the keys of another kind of step in YAML."""


def pipeline(name: str, sources: str, cases: Sequence[Case]) -> str:
    """One pipeline with a query for each case."""
    written = {step: text for case in cases for step, text in (*case.before.items(), (case.name, case.sql))}
    steps = [f"{step}: {{{_declared(text)}}}" for step, text in written.items()]
    keep = "type: python, each_batch: 'tests.models.collected:keep'"
    sinks = [f"{case.name}_out: {{of: {case.name}, {keep}}}" for case in cases]
    queries = [f"{case.name}: {case.settings or '{}'}" for case in cases]
    sections = {"steps": steps, "sinks": sinks, "queries": queries}
    shown = "".join(f"{key}:\n{indent(chr(10).join(lines), '  ')}\n" for key, lines in sections.items())
    return f"pipeline: {name}\nsources:\n{indent(sources.strip(chr(10)), '  ')}\n{shown}"


def _declared(text: str) -> str:
    return f'sql: "{text}"' if text.startswith("SELECT") else text


def rows_of(case: Case) -> list[str]:
    """What came out, over all batches."""
    found: Counter[tuple[object, ...]] = sum(held[f"{case.name}_out"].values(), Counter())
    return sorted(" ".join(map(str, row)) for row in found.elements())


def late_of(case: Case, views: Sequence[QueryView]) -> tuple[int, int]:
    view = next(view for view in views if view.name == case.name)
    return view.late_rows, view.late_groups


def files(folder: str, *texts: str) -> dict[str, str]:
    """Files of a folder, one for each batch: rows between bars, each with its time of day first, as in `00:05,a,1`."""
    return {
        f"{folder}/{number:02d}.csv": "".join(f"2024-01-01T{row.strip()}\n" for row in text.split("|"))
        for number, text in enumerate(texts)
    }


def in_order(root: Path, written: Iterable[str]) -> None:
    """The files of each folder get times in the order of their names: a stream reads them by their time."""
    for number, name in enumerate(sorted(written)):
        os.utime(root / name, (1_700_000_000 + number, 1_700_000_000 + number))
