"""Records of files that cannot be decoded: who judges them, and what is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from penstock.dead_letters.bad_records import HIDDEN
from penstock.sources import Files
from tests.conftest import place
from tests.failures import of_error

pytestmark = pytest.mark.spark

JSON = {"type": "json", "schema": "id BIGINT, name STRING"}
CSV = {"type": "csv", "header": True, "schema": "id BIGINT, name STRING"}


def judged(spark, tmp_path, format_, text, **keys):
    place(tmp_path / "in/a.txt", text)
    source = Files(path=str(tmp_path / "in"), format=format_, **keys)
    for key, value in source.session_settings.items():
        spark.conf.set(key, value)
    rows = source.load(spark)
    assert rows.isStreaming is (keys.get("read") != "static")
    if rows.isStreaming:
        query = rows.writeStream.format("memory").queryName("judged").trigger(availableNow=True).start()
        query.awaitTermination()
        rows = spark.table("judged")
    return rows.collect()


def told(rows):
    return {row[HIDDEN].raw.decode(): row[HIDDEN].reason for row in rows if row[HIDDEN].reason}


@pytest.mark.parametrize("read", ["stream", "static"])
@pytest.mark.parametrize(
    ("format_", "text", "bad"),
    [
        (
            JSON,
            '{"id": 1, "name": "a", "more": 1}\n{"id": "x", "name": "b"}\n{broken\n[1]\n',
            {
                '{"id": "x", "name": "b"}': "does not fit the schema; nothing was read for `id`",
                "{broken": "is not JSON",
                "[1]": "does not fit the schema; nothing was read for `id`, `name`",
            },
        ),
        (
            CSV,
            "id,name\n1,a\nx,b\n2,b,c\n3\n",
            {
                "x,b": "does not fit the schema; nothing was read for `id`",
                "2,b,c": "does not fit the schema",
                "3": "does not fit the schema; nothing was read for `name`",
            },
        ),
        (
            {"type": "json", "schema": "infer"},
            '{"id": 1, "name": "a"}\n{broken\n',
            {"{broken": "is not JSON"},
        ),
        (
            {"type": "json", "single_variant_column": "v"},
            '{"id": 1, "name": "a"}\n{broken\n',
            {"{broken": "is not JSON"},
        ),
    ],
    ids=["json", "csv", "inferred", "variant"],
)
def test_bad_records_keep_their_text_reason_and_file(spark, tmp_path, format_, text, bad, read):
    rows = judged(spark, tmp_path, format_, text, read=read)
    assert told(rows) == bad
    assert next(row for row in rows if row[HIDDEN].reason is None)[HIDDEN].raw is None
    assert {row[HIDDEN].origin.file.rsplit("/", 1)[-1] for row in rows} == {"a.txt"}
    assert len(rows) == len(bad) + 1


def test_a_record_that_is_large_or_deep_is_not_said_to_be_no_json(spark, tmp_path):
    deep, digits = "[" * 10_000 + "]" * 10_000, "1" * 1_100
    texts = [
        '{"id": 0, "name": "%s"}' % ("y" * 25_000_000),
        f'{{"id": 1, "name": {deep}}}',
        f'{{"id": 2, "name": {digits}}}',
        f'{{"id": 3, "name": {deep}',
        '{"id": 4, "name": "%s"}' % ("z" * 15_000_000),
    ]
    rows = judged(spark, tmp_path, JSON, "".join(f"{text}\n" for text in texts), read="static")
    found = {row[HIDDEN].raw[:9].decode(): row[HIDDEN].reason for row in rows if row[HIDDEN].reason}
    more = ", which is more than Spark parses"
    assert found == {
        '{"id": 0,': f"holds a text of more than 20,000,000 characters{more}",
        '{"id": 1,': f"is nested deeper than 1,000 levels{more}",
        '{"id": 2,': f"holds a number of more than 1,000 digits{more}",
        '{"id": 3,': "is not JSON",
    }
    assert [row.id for row in rows if row[HIDDEN].reason is None] == [4]


@pytest.mark.parametrize("format_", [JSON, CSV], ids=["json", "csv"])
def test_a_query_finds_the_same_records_bad_whatever_columns_it_asks_for(spark, tmp_path, format_):
    text = '{"id": "x", "name": "b"}\n{"id": 2, "name": "b"}\n' if format_ is JSON else "id,name\nx,b\n2,b\n"
    place(tmp_path / "in/a.txt", text)
    rows = Files(path=str(tmp_path / "in"), format=format_, read="static").load(spark)
    good, bad = rows.where(f"{HIDDEN}.reason IS NULL"), rows.where(f"{HIDDEN}.reason IS NOT NULL")
    assert [row.name for row in good.select("name").collect()] == ["b"]
    assert (good.count(), bad.count()) == (1, 1)
    assert bad.select(f"{HIDDEN}.raw").collect()[0].raw in (b'{"id": "x", "name": "b"}', b"x,b")


@pytest.mark.parametrize(
    "format_",
    [
        JSON | {"mode": "permissive"},
        JSON | {"schema": "id BIGINT, _corrupt_record STRING"},
        CSV | {"column_name_of_corrupt_record": "bad"},
        {"type": "text"},
        {"type": "parquet", "schema": "id BIGINT"},
    ],
    ids=str,
)
def test_a_format_that_has_its_own_way_is_left_alone(format_):
    assert not Files(path="in", format=format_).judges_records


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"format": JSON | {"mode": "failfast"}, "on_bad_record": "drop"}, "`mode` of the format both say"),
        ({"format": JSON | {"schema": "_corrupt_record STRING"}, "on_bad_record": "drop"}, "`_corrupt_record`"),
        ({"format": "text", "on_bad_record": "drop"}, "for csv and json"),
        ({"format": CSV | {"column_pruning": True}}, "hides bad records"),
        ({"format": JSON, "on_bad_record": "shrug"}, "on_bad_record"),
        ({"format": JSON, "refresh": "1 hour"}, "`refresh` is for `read: static`"),
        ({"format": JSON, "read": "static", "refresh": "batch"}, "give `refresh` a duration"),
        ({"format": JSON, "read": "static", "refresh": "now and then"}, "refresh"),
        ({"format": JSON, "schema_hints": "id INT"}, "needs `on_new_columns`"),
        ({"format": JSON, "on_new_columns": "add"}, "a fixed `schema` does not live"),
        ({"format": "text", "on_new_columns": "add"}, "knows csv, json and parquet, not text"),
        ({"format": "json", "on_new_columns": "add", "read": "static"}, "is for streams"),
        ({"format": "csv", "on_new_columns": "add"}, "CSV needs `header: true`"),
        (
            {"format": {"type": "csv", "header": True, "locale": "de"}, "on_new_columns": "add"},
            "`locale` is not heeded",
        ),
        ({"format": {"type": "json", "mode": "failfast"}, "on_new_columns": "add"}, "has no place in a living schema"),
        ({"format": "json", "on_new_columns": "guess"}, "on_new_columns"),
        ({"format": "json", "on_new_columns": "add", "sample_files": 0}, "sample_files"),
    ],
    ids=str,
)
def test_keys_that_contradict_each_other_are_refused(keys, said):
    with pytest.raises(ValidationError, match=said):
        Files(path="in", **keys)


def test_static_files_that_were_replaced_are_read_anew_after_a_restart(spark, tmp_path):
    place(tmp_path / "known/a.csv", "1,x\n")
    format_ = {"type": "csv", "schema": "id BIGINT, name STRING"}
    source = Files(path=str(tmp_path / "known"), format=format_, read="static", refresh="1 hour")
    once = Files(path=str(tmp_path / "known"), format=format_, read="static")
    place(tmp_path / "in/a.json", '{"id": 1}\n')
    stream = spark.readStream.schema("id BIGINT").json(str(tmp_path / "in"))

    def run():
        joined = stream.join(source.load(spark).drop(HIDDEN), "id")
        (tmp_path / "known/a.csv").unlink(missing_ok=True)
        place(tmp_path / "known/b.csv", "1,y\n")
        query = joined.writeStream.format("memory").queryName("joined").trigger(availableNow=True).start()
        query.awaitTermination()

    with pytest.raises(Exception, match="FILE_NOT_EXIST") as caught:
        run()
    failure = of_error(caught.value)
    assert failure.kind == "missing_file"
    assert source.recover(failure, spark, "checkpoint")
    assert not once.recover(failure, spark, "checkpoint")
    other = tuple(path.replace("/known/", "/other/") for path in failure.paths)
    assert not source.recover(replace(failure, paths=other), spark, "checkpoint")
    assert not source.recover(replace(failure, paths=()), spark, "checkpoint")
    run()
    assert [row.name for row in spark.table("joined").collect()] == ["y"]
