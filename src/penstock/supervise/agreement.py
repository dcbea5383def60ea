"""Do the dead letters that were written equal the rows that the data path put aside?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.dead_letters.as_step import query_name
from penstock.problems import Problem
from penstock.supervise.query_view import QueryView


def disagreements(views: Sequence[QueryView]) -> Iterator[Problem]:
    """One warning for each node whose two queries have read the same rows and count different dead letters.

    Two queries run at their own pace. Where one has read more than the other, nothing is said.
    """
    by_name = {(view.pipeline, view.name): view for view in views}
    for data in views:
        for node, filtered in data.set_aside.items():
            aside = by_name.get((data.pipeline, query_name(node)))
            if aside is None or aside is data or not _read_the_same(data, aside):
                continue
            if filtered != aside.rows_out:
                yield Problem(
                    "RECORD005",
                    f"query `{data.name}` set {filtered:,} rows of `{node}` aside, and `{aside.name}` wrote"
                    f" {aside.rows_out:,} dead letters",
                    f"make the checks of `{node}` repeatable: without `current_timestamp()` or `rand()`",
                    severity="warning",
                )


def _read_the_same(data: QueryView, aside: QueryView) -> bool:
    """Of every source of the dead letters, have both queries read as many rows, up to the same place?"""
    return bool(aside.read) and all(data.read.get(source) == taken for source, taken in aside.read.items())
