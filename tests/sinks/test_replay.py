"""The contract of every sink that promises exactly-once: a batch that is run again repeats no row."""

from __future__ import annotations

import pytest
import yaml

from penstock import catalog
from tests.actions.test_run import checkpoint_of, forget_last_commit
from tests.conftest import place

pytestmark = pytest.mark.spark

EXACTLY_ONCE = [name for name, sink in catalog.sinks().items() if sink.guarantee.promise == "exactly-once"]

READERS = {"files": lambda spark, root: spark.read.parquet(str(root / "out/counts"))}
"""By sink, how its readers see what its `example` has written."""


@pytest.mark.parametrize("sink", EXACTLY_ONCE)
def test_a_batch_that_is_run_again_repeats_no_row(project_at, run_once, spark, sink):
    text = yaml.safe_dump(
        {
            "pipeline": "replayed",
            "sources": {
                "counts": {"type": "files", "path": "in", "format": {"type": "csv", "schema": "day STRING, n INT"}}
            },
            "sinks": {"out": yaml.safe_load(catalog.sinks()[sink].example)},
        }
    )
    root = project_at(text, files={"in/1.csv": "mon,1\ntue,2\n"})
    assert run_once(root).ok
    for day, number in (("wed", 3), ("thu", 4)):
        forget_last_commit(checkpoint_of(root, "replayed", "counts"))
        place(root / f"in/{number}.csv", f"{day},{number}\n")
        again = run_once(root)
        assert again.ok
        assert again.queries[0].batches == 2
    assert sorted(row.n for row in READERS[sink](spark, root).collect()) == [1, 2, 3, 4]
