"""What a manifest holds, and what older ones allow."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.actions.plan import plan
from penstock.plan.verdict import QueryPlan
from tests.edits.shapes import COUNT, SUMS, WINDOWS, Text
from tests.edits.test_edits import FIRST, feed, outcome, project

SALTED = SUMS.with_(
    sql="SELECT sha2(concat(k, '${SALT_SECRET}'), 256) AS who, sum(if(k2 = '${SALT_SECRET}', v, u)) AS s FROM a"
    " WHERE k <> '${SALT_SECRET}' GROUP BY sha2(concat(k, '${SALT_SECRET}'), 256)"
)
LARGEST = 20_000
"""Bytes of a manifest."""


def manifest_of(root: Path) -> Path:
    (found,) = (file for file in root.rglob("*.json") if file.parent.name == "q" and file.stem.isdigit())
    return found


def planned(root: Path, text: Text, start_engine) -> QueryPlan:
    project(root, text)
    (found,) = plan(root, (), None, start_engine).queries
    return found


def test_a_secret_in_sql_is_not_in_the_manifest_and_another_one_is_noticed(
    tmp_path, run_once, start_engine, monkeypatch
):
    monkeypatch.setenv("SALT_SECRET", "hunter2hunter2")
    root = project(tmp_path, SALTED)
    feed(root, FIRST)
    assert outcome(run_once, root)
    text = manifest_of(root).read_text()
    assert "hunter2" not in text
    assert len(text) < LARGEST
    assert not planned(root, SALTED, start_engine).findings
    assert not planned(root, SALTED, None).findings
    monkeypatch.setenv("SALT_SECRET", "correct horse")
    assert planned(root, SALTED, start_engine).verdict == "restart"
    assert planned(root, SALTED, None).findings


def test_a_manifest_of_format_1_resumes_only_what_was_not_edited(tmp_path, run_once, start_engine):
    root = project(tmp_path, COUNT)
    feed(root, FIRST)
    assert outcome(run_once, root)
    file = manifest_of(root)
    kept = json.loads(file.read_text())
    old = {key: value for key, value in kept.items() if key not in ("signature", "shape", "sources", "sinks")}
    del old["definition"]["resolved"]
    file.write_text(json.dumps(old | {"format": 1}))
    swapped = COUNT.with_(sql=COUNT.sql.replace("GROUP BY k, k2", "GROUP BY k2, k"))
    stateless = COUNT.with_(sql="SELECT k, k2, v AS s FROM a", mode="append", sink="type: delta, path: out")
    moved = COUNT.with_(sink=COUNT.sink.replace("path: out", "path: out2"))
    for engine in (start_engine, None):
        assert planned(root, COUNT, engine).verdict == "resume"
        for edit in (swapped, stateless, moved, COUNT.with_(a="b")):
            assert "PLAN022" in {one.code for one in planned(root, edit, engine).findings}, (edit, engine)


def test_state_that_holds_times_belongs_to_its_time_zone(tmp_path, run_once, start_engine):
    tokyo = ", spark: {spark.sql.session.timeZone: Asia/Tokyo}"
    for base, verdict in ((WINDOWS, "restart"), (COUNT, "resume")):
        root = project(tmp_path / verdict, base)
        feed(root, FIRST)
        assert outcome(run_once, root)
        for engine in (start_engine, None):
            assert planned(root, base, engine).verdict == "resume"
            moved = planned(root, base.with_(query=tokyo), engine)
            assert (moved.verdict, "PLAN032" in [one.code for one in moved.findings]) == (verdict, verdict == "restart")
        assert outcome(run_once, project(root, base.with_(query=tokyo))) == (verdict == "resume")
        assert outcome(run_once, project(root, base))


def test_columns_of_csv_that_change_places_are_refused_where_there_is_state(tmp_path, run_once, start_engine):
    base = SUMS.with_(columns="k STRING, v BIGINT, u BIGINT")
    as_csv = ("format: {type: json,", "format: {type: csv,")

    def written(text: Text) -> Path:
        root = project(tmp_path, text)
        file = root / "pipelines" / "p.yaml"
        file.write_text(file.read_text().replace(*as_csv, 1))
        return root

    root = written(base)
    (root / "a").mkdir(exist_ok=True)
    (root / "a" / "0.csv").write_text("x,1,10\ny,2,20\n")
    assert outcome(run_once, root)
    exchanged = base.with_(columns="k STRING, u BIGINT, v BIGINT")
    for engine in (start_engine, None):
        (found,) = plan(written(exchanged), (), None, engine).queries
        assert "PLAN031" in [one.code for one in found.findings]
        assert found.verdict == "restart"
    assert not outcome(run_once, root)
    assert outcome(run_once, written(base))
