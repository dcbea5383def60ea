"""What contenders leave behind about their micro-batches."""

from __future__ import annotations

import json

from penstock.bench.contenders import penstock, plain_spark

PHASES = {"walCommit": 30, "commitOffsets": 20, "addBatch": 900}


def test_penstock_tells_it_at_its_end(tmp_path):
    query = {"batches": 10, "milliseconds": PHASES}
    (tmp_path / "output.log").write_text("a warning\n" + json.dumps({"ok": True, "queries": [query]}, indent=2))
    assert penstock.progress(tmp_path).log_milliseconds == 5.0


def test_a_process_that_was_killed_tells_nothing(tmp_path):
    (tmp_path / "output.log").write_text("")
    assert penstock.progress(tmp_path) is None
    assert plain_spark.progress(tmp_path) is None


def test_plain_spark_leaves_a_file_with_its_newest_batches(tmp_path):
    (tmp_path / "progress.json").write_text(json.dumps([PHASES, {"walCommit": 10}]))
    assert plain_spark.progress(tmp_path).log_milliseconds == 30.0
