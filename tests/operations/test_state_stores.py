"""State stores: what was asked for is what Spark uses, and a checkpoint keeps what it was born with."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from penstock.checks.every_rule import judge
from penstock.checks.rule import Subject
from penstock.engine.latency import profile
from penstock.pipeline import from_yaml, project
from penstock.pipeline.yaml_text import parse
from penstock.problems import UserError, errors_in
from penstock.query.state_store import PREFIX, PROVIDERS, State
from penstock.spec import spark_option_names
from tests.conftest import place

STORES = {
    "plain": {},
    "in_memory": {"store": "hdfs"},
    "of_their_own": {"store": PROVIDERS["hdfs"], "format": 1},
    "first_format": {"format": 1, "changelog": False, "track_rows": False},
}
PIPELINE = yaml.safe_dump(
    {
        "pipeline": "stores",
        "sources": {
            "words": {"type": "files", "path": "in", "format": {"type": "csv", "schema": "word STRING"}},
        },
        "steps": {name: {"sql": "SELECT word, count(*) AS n FROM words GROUP BY word"} for name in STORES},
        "sinks": {
            f"{name}_out": {"of": name, "type": "python", "each_batch": "tests.models.collected:keep"}
            for name in STORES
        },
        "queries": {name: {"mode": "update", "state": state} for name, state in STORES.items()},
    }
)


def suffixes(root: Path, query: str) -> set[str]:
    files = (root / "storage/checkpoints/stores" / query / "0001/state/0/0").iterdir()
    return {file.suffix for file in files if file.is_file() and file.name[0] not in "._"} - {".crc"}


def measures(result, query: str) -> dict[str, int]:
    view = next(view for view in result.queries if view.name == query)
    return view.last.raw["stateOperators"][0]["customMetrics"]


@pytest.mark.spark
@pytest.mark.covers("store.hdfs", "store.rocksdb", "store.custom", "store.rocksdb.changelog", "store.rocksdb.row-count")
def test_each_store_is_used_and_kept(project_at, run_once):
    from tests.models.collected import held

    root = project_at(PIPELINE, files={"in/a.csv": "a\nb\na\n"})
    result = run_once(root)
    assert result.ok, result.problems
    assert "rocksdbPutLatency" in measures(result, "plain")
    assert "loadedMapCacheHitCount" in measures(result, "in_memory")
    assert "loadedMapCacheHitCount" in measures(result, "of_their_own")
    assert "rocksdbPutLatency" in measures(result, "first_format")
    assert ".changelog" in suffixes(root, "plain")
    assert suffixes(root, "in_memory") == suffixes(root, "of_their_own") == {".delta"}
    assert suffixes(root, "first_format") == {".zip"}
    states = {view.name: view.last.state_rows for view in result.queries}
    assert states == {"plain": 2, "in_memory": 2, "of_their_own": 2, "first_format": 0}
    manifests = {
        name: json.loads((root / f"storage/checkpoints/stores/{name}/0001.json").read_text())["settings"]
        for name in STORES
    }
    formats = {name: one[f"{PREFIX}.checkpointFormatVersion"] for name, one in manifests.items()}
    assert formats == {"plain": "2", "in_memory": "1", "of_their_own": "1", "first_format": "1"}

    changed = yaml.safe_load(PIPELINE)
    changed["queries"]["plain"]["state"] = {"store": "hdfs"}
    changed["queries"]["first_format"]["state"] = {"changelog": True}
    place(root / "pipelines/p0.yaml", yaml.safe_dump(changed))
    place(root / "in/b.csv", "a\n")
    again = run_once(root)
    assert again.ok, again.problems
    assert "rocksdbPutLatency" in measures(again, "plain")  # as it was born
    assert ".changelog" in suffixes(root, "first_format")  # this may change
    for name in STORES:
        assert ("a", 3) in held[f"{name}_out"][max(held[f"{name}_out"])]


@pytest.mark.spark
def test_a_class_that_spark_does_not_find(project_at, run_once):
    text = PIPELINE.replace("store: hdfs", "store: com.example.Store")
    problems = run_once(project_at(text, files={"in/a.csv": "a\n"})).problems
    (problem,) = errors_in(problems)
    assert (problem.code, problem.message) == ("STORE003", "Spark does not find the state store `com.example.Store`")


def query_with(state: object, root: Path):
    text = "pipeline: p\nsources: {a: {type: rate}}\nsinks: {o: {of: a, type: console}}\n"
    text += f"queries: {{a: {json.dumps(state)}}}\n"
    return from_yaml.from_document(parse(text, "pipeline.yaml"), root)


def settings_of(state: object, root: Path, of_project: State | None = None, raw: dict[str, str] | None = None):
    (query,) = query_with(state, root).queries
    return profile(query, 2, raw, of_project).settings


def test_the_query_wins_over_the_project_and_spark_over_both(tmp_path):
    own = settings_of({"state": {"changelog": False}}, tmp_path, State(block_size_kb=8, changelog=True))
    assert own[f"{PREFIX}.rocksdb.changelogCheckpointing.enabled"] == "false"
    assert own[f"{PREFIX}.rocksdb.blockSizeKB"] == "8"
    assert own[f"{PREFIX}.checkpointFormatVersion"] == "2"
    raw = {"spark": {f"{PREFIX}.rocksdb.blockSizeKB": 16}, "state": {"block_size_kb": 4}}
    assert settings_of(raw, tmp_path)[f"{PREFIX}.rocksdb.blockSizeKB"] == "16"
    # Another store than the project's leaves behind what is tuned for that.
    other = settings_of({"state": {"store": "hdfs"}}, tmp_path, State(block_size_kb=8, format=2))
    assert other[f"{PREFIX}.providerClass"] == PROVIDERS["hdfs"]
    assert other[f"{PREFIX}.checkpointFormatVersion"] == "1"
    assert not any(".rocksdb." in key for key in other)
    of_project = settings_of({}, tmp_path, State(store="hdfs"))
    assert of_project[f"{PREFIX}.providerClass"] == PROVIDERS["hdfs"]
    overruled = settings_of({}, tmp_path, State(block_size_kb=8), {f"{PREFIX}.rocksdb.blockSizeKB": "2"})
    assert overruled[f"{PREFIX}.rocksdb.blockSizeKB"] == "2"


@pytest.mark.spark
@pytest.mark.covers("store.rocksdb.options", "store.rocksdb.memory")
def test_every_key_is_a_setting_that_spark_reads(spark):
    """Each option of RocksDB that has a key is one that Spark knows, and each that Spark knows has a key."""
    conf = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.execution.streaming.state.RocksDBConf$")
    instance = conf.getField("MODULE$").get(None)
    known = set()
    for method in conf.getDeclaredMethods():
        if method.getReturnType().getSimpleName().endswith("ConfEntry"):
            method.setAccessible(True)
            known.add(method.invoke(instance, None).toString().partition("(")[2].partition(",")[0])
    options = {option.removeprefix("rocksdb.") for option in spark_option_names(State).values() if "rocksdb." in option}
    assert options == known
    session = spark.newSession()
    given = State(
        bounded_memory=True, max_memory_mb=64, write_buffer_cache_ratio=0.4, block_size_kb=8, track_rows=False
    )
    for key, value in given.settings.items():
        session.conf.set(key, value)
    jvm = spark._jvm.org.apache.spark.sql.execution.streaming.state
    nothing = getattr(getattr(spark._jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
    read = jvm.RocksDBConf.apply(jvm.StateStoreConf(session._jsparkSession.sessionState().conf(), nothing))
    assert (read.boundedMemoryUsage(), read.totalMemoryUsageMB(), read.writeBufferCacheRatio()) == (True, 64, 0.4)
    assert (read.blockSizeKB(), read.trackTotalNumberOfRows()) == (8, False)


def told(root: Path, state: object, settings: str = "name: p\n") -> list[tuple[str, str]]:
    try:
        one = project.from_document(parse(settings, "penstock.yaml"), root)
        problems = judge(Subject(one, query_with({"state": state}, root)))
    except UserError as error:
        problems = error.problems
    return [(problem.code, problem.message) for problem in problems]


def test_contradictions_are_told(tmp_path):
    assert told(tmp_path, {"store": "hdfs", "format": 2}) == [
        ("STORE001", "`format` in the state of `a` needs `store: rocksdb`")
    ]
    assert told(tmp_path, {"changelog": True}, "name: p\nstate: {store: hdfs}\n") == [
        ("STORE001", "`changelog` in the state of `a` needs `store: rocksdb`")
    ]
    assert told(tmp_path, {}, "name: p\nstate: {max_memory_mb: 100}\n") == [
        ("STORE001", "`max_memory_mb` in `state` of penstock.yaml needs `bounded_memory: true`")
    ]
    assert [code for code, _ in told(tmp_path, {"bounded_memory": True})] == ["STORE002"]
    assert told(tmp_path, {"stroe": "hdfs"})[0][0] == "SPEC007"
    ((_, message),) = told(tmp_path, {"store": "rocksbd"})
    assert message.endswith(
        "'rocksbd' is neither `rocksdb` nor `hdfs`, nor a class with its package — did you mean `rocksdb`?"
    )


def test_a_reference_in_the_state_is_resolved(tmp_path, monkeypatch):
    from penstock.engine import resolve

    monkeypatch.setitem(os.environ, "BLOCK", "16")
    written = query_with({"state": {"block_size_kb": "${BLOCK}"}}, tmp_path)
    resolved = resolve.pipeline(written, project.bare(tmp_path), os.environ)
    assert resolved.queries[0].settings.state == State(block_size_kb=16)
