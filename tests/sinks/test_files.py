"""Files in a folder, as a reader that honours Spark's log of the folder sees them."""

from __future__ import annotations

import gzip

import pytest

from tests.actions.test_run import checkpoint_of, forget_last_commit
from tests.conftest import place

pytestmark = pytest.mark.spark

COPY = """
    pipeline: copy
    latency: low
    sources: {rows: {type: files, path: in, format: {type: csv, schema: 'id BIGINT, day STRING'}}}
    steps: {kept: {sql: "%s"}}
    sinks: {out: {of: kept, type: files, path: out, %s}}
"""
ROWS = "SELECT id, day FROM rows"


def data_files(root) -> list[str]:
    found = (path.relative_to(root / "out") for path in (root / "out").rglob("part-*"))
    return sorted(str(path) for path in found)


@pytest.mark.covers("sink.files")
@pytest.mark.parametrize(
    ("written", "ending", "read"),
    [
        ("{type: csv, header: true, sep: ';'}", ".csv", {"header": "true", "sep": ";"}),
        ("{type: json, compression: gzip}", ".json.gz", {}),
        ("{type: orc, compression: zlib}", ".zlib.orc", {}),
        ("parquet", ".snappy.parquet", {}),
        ("{type: xml, row_tag: row}", ".xml", {"rowTag": "row"}),
    ],
    ids=["csv", "json", "orc", "parquet", "xml"],
)
def test_every_format_is_written(project_at, run_once, spark, written, ending, read):
    root = project_at(COPY % (ROWS, f"format: {written}"), files={"in/1.csv": "1,mon\n2,tue\n"})
    result = run_once(root)
    assert result.ok
    assert result.queries[0].promise == "exactly-once"
    assert [name.endswith(ending) for name in data_files(root)] == [True]
    kind = ending.rpartition(".")[2].replace("gz", "json")
    rows = spark.read.format(kind).schema("id BIGINT, day STRING").options(**read).load(str(root / "out"))
    assert sorted(map(tuple, rows.collect())) == [(1, "mon"), (2, "tue")]


@pytest.mark.covers("sink.files")
def test_lines_are_written_in_folders_by_column(project_at, run_once, spark):
    text = COPY % (
        "SELECT CAST(id AS STRING) AS id, day FROM rows",
        "format: {type: text, compression: gzip}, partition_by: [day]",
    )
    root = project_at(text, files={"in/1.csv": "1,mon\n2,tue\n3,mon\n"})
    assert run_once(root).ok
    assert sorted({name.partition("/")[0] for name in data_files(root)}) == ["day=mon", "day=tue"]
    (monday,) = (root / "out/day=mon").glob("part-*.gz")
    assert gzip.decompress(monday.read_bytes()) == b"1\n3\n"
    assert spark.read.text(str(root / "out")).where("day = 'tue'").first().value == "2"


def test_a_file_has_only_so_many_rows(project_at, run_once):
    root = project_at(
        COPY % (ROWS, "format: json, max_records_per_file: 2"), files={"in/1.csv": "1,a\n2,b\n3,c\n4,d\n5,e\n"}
    )
    assert run_once(root).ok
    assert sorted(len((root / "out" / name).read_text().splitlines()) for name in data_files(root)) == [1, 2, 2]


@pytest.mark.covers("sink.files.retention")
def test_files_older_than_the_retention_leave_the_log_and_stay_on_disk(project_at, run_once, spark):
    # The log drops old files when it is compacted: here in each second batch.
    text = COPY % (ROWS, "format: json, retention: 1 ms")
    settings = "    queries: {kept: {spark: {spark.sql.streaming.fileSink.log.compactInterval: 2}}}\n"
    root = project_at(text + settings)
    for number in (1, 2, 3):
        place(root / f"in/{number}.csv", f"{number},mon\n")
        assert run_once(root).ok
    assert len(data_files(root)) == 3
    seen = [row.id for row in spark.read.json(str(root / "out")).collect()]
    assert 1 not in seen
    assert 3 in seen


def test_files_of_an_attempt_that_never_reached_the_log_are_not_seen(project_at, run_once, spark):
    root = project_at(COPY % (ROWS, "format: json"), files={"in/1.csv": "1,mon\n"})
    assert run_once(root).ok
    batch = forget_last_commit(checkpoint_of(root, "copy", "kept"))
    for name in (f"{batch}", f".{batch}.crc"):
        (root / "out/_spark_metadata" / name).unlink()
    assert run_once(root).ok
    assert len(data_files(root)) == 2
    assert [row.id for row in spark.read.json(str(root / "out")).collect()] == [1]
