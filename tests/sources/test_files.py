"""Which files are read, and what becomes of them as rows."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pytest
from pyarrow import orc, parquet
from pydantic import ValidationError

from penstock.catalog import type_of
from penstock.formats.any import READ_FORMATS
from penstock.sources import Files
from penstock.spec import spark_option_names
from tests.conftest import place

pytestmark = pytest.mark.spark

LINES = Files(path="in", format="text")
SCHEMA = "id BIGINT, name STRING"
TEXTS = {
    "csv": "id;name\n1;a\n2;b\n",
    "json": '{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n',
    "text": "1 a\n2 b\n",
    "xml": "<all><row><id>1</id><name>a</name></row><row><id>2</id><name>b</name></row></all>",
}
OPTIONS = {"csv": {"header": True, "sep": ";", "infer_schema": True}, "xml": {"row_tag": "row"}}


def place_rows(kind: str, folder: Path) -> None:
    """One file of a format, with the same two rows as the others."""
    if kind in TEXTS:
        place(folder / f"1.{kind}", TEXTS[kind])
    else:
        folder.mkdir()
        rows = pyarrow.table({"id": [1, 2], "name": ["a", "b"]})
        {"orc": orc, "parquet": parquet}[kind].write_table(rows, folder / f"1.{kind}")


def files_in(folder, *names: str) -> None:
    """Files that hold their own name, each a second newer than the one before."""
    for second, name in enumerate(names):
        place(folder / name, name + "\n")
        os.utime(folder / name, (1_800_000_000 + second,) * 2)


@pytest.mark.covers("source.files.formats", "schema.given", "schema.inferred")
@pytest.mark.parametrize("schema", [SCHEMA, "infer"], ids=["given", "inferred"])
@pytest.mark.parametrize("kind", [kind for kind in map(type_of, READ_FORMATS) if kind != "text"])
def test_every_format_streams_with_a_given_and_with_an_inferred_schema(take_all, tmp_path, kind, schema):
    place_rows(kind, tmp_path / "in")
    taken = take_all(Files(path="in", format={"type": kind, "schema": schema} | OPTIONS.get(kind, {})))
    assert sorted((row["id"], row["name"]) for row in taken.rows) == [(1, "a"), (2, "b")]


@pytest.mark.covers("source.files.formats")
def test_lines_stream_without_a_schema(take_all, tmp_path):
    place_rows("text", tmp_path / "in")
    assert take_all(LINES).column("value") == ["1 a", "2 b"]


@pytest.mark.covers("schema.folders")
def test_folders_give_columns_with_a_type_or_as_text(take_all, tmp_path):
    files_in(tmp_path / "in", "day=07/a.txt", "day=8/b.txt")
    typed = take_all(LINES)
    assert (typed.types["day"], sorted(typed.column("day"))) == ("int", [7, 8])
    plain = take_all(LINES.model_copy(update={"infer_partition_types": False}))
    assert (plain.types["day"], sorted(plain.column("day"))) == ("string", ["07", "8"])


def test_one_folder_below_the_base_path_still_gives_its_column(take_all, tmp_path):
    files_in(tmp_path / "in", "day=7/a.txt", "day=8/b.txt")
    taken = take_all(Files(path="in/{day=8}", base_path="in", format="text"))
    assert list(map(tuple, taken.rows)) == [("day=8/b.txt", 8)]


def test_a_base_path_that_spark_would_stumble_over_is_refused():
    with pytest.raises(ValidationError, match=r"write `in/\{day=8\}`"):
        Files(path="in/day=8", base_path="in", format="text")


def test_a_folder_that_does_not_fit_the_others_is_passed_over(take_all, tmp_path):
    files_in(tmp_path / "in", "day=7/a.txt", "stray/b.txt")
    taken = take_all(Files(path="in", format="text", ignore_invalid_partition_paths=True))
    assert list(map(tuple, taken.rows)) == [("day=7/a.txt", 7)]


@pytest.mark.covers("source.files.glob")
@pytest.mark.parametrize(
    ("keys", "names"),
    [
        ({"path": "in", "path_glob_filter": "*.txt"}, ["a.txt", "c.txt"]),
        ({"path": "in", "recursive_file_lookup": True}, ["a.txt", "b.log", "c.txt", "x/d.txt", "y/d.txt"]),
        ({"path": "in/*.{txt,log}"}, ["a.txt", "b.log", "c.txt"]),
        ({"path": "in/[xy]"}, ["x/d.txt", "y/d.txt"]),
    ],
    ids=["name filter", "recursive", "glob of files", "glob of folders"],
)
def test_files_are_chosen(take_all, tmp_path, keys, names):
    files_in(tmp_path / "in", "a.txt", "b.log", "c.txt", "x/d.txt", "y/d.txt", ".hidden", "_half")
    assert sorted(take_all(Files(format="text", **keys)).column("value")) == names


def test_a_corrupt_file_fails_the_query_or_is_passed_over(take_all, tmp_path):
    files_in(tmp_path / "in", "good.txt")
    (tmp_path / "in/bad.gz").write_bytes(gzip.compress(b"lost\n" * 1_000)[:-20])
    tolerant = take_all(Files(path="in", format="text", ignore_corrupt_files=True))
    assert "good.txt" in tolerant.column("value")
    with pytest.raises(Exception, match=r"the file .*bad\.gz` cannot be read: Unexpected end"):
        take_all(LINES)


def test_static_files_are_chosen_by_their_time(project_at, run_once, spark):
    root = project_at(
        """
        pipeline: known
        sources:
          names: {type: files, path: in, format: text}
          known:
            type: files
            path: known
            read: static
            format: text
            modified_after: '2027-01-15T08:00:00'
            modified_before: '2027-01-15T08:00:02'
        steps: {met: {sql: SELECT value FROM names JOIN known USING (value)}}
        sinks: {out: {of: met, type: files, path: out, format: text}}
        """,
        files={"in/names": "a\nb\nc\n"},
    )
    files_in(root / "known", "a", "b", "c")
    assert datetime.fromtimestamp(1_800_000_000, UTC).isoformat() == "2027-01-15T08:00:00+00:00"
    assert run_once(root).ok
    assert [row.value for row in spark.read.text(str(root / "out")).collect()] == ["b"]


SET_IN_THE_SESSION = {"cleaner_threads", "infer_partition_types"}
OPTIONS_OF_FORMATS = {"timeZone"}


def test_the_options_are_those_of_the_engine(spark):
    load = spark._jvm.java.lang.Class.forName
    parsed = load("org.apache.spark.sql.execution.streaming.runtime.FileStreamOptions")
    # Its other fields are the map that it parses and its logger.
    simple = ("boolean", "float", "int", "long", "scala.Enumeration$Value", "scala.Option")
    streaming = {field.getName() for field in parsed.getDeclaredFields() if field.getType().getName() in simple}
    listing = load("org.apache.spark.sql.execution.datasources.FileIndexOptions$").getField("MODULE$").get(None)
    reading = load("org.apache.spark.sql.catalyst.FileSourceOptions$").getField("MODULE$").get(None)
    engine = {name.removesuffix("Ms") for name in streaming}
    engine |= set(listing.getAllOptions().mkString(",").split(",")) - OPTIONS_OF_FORMATS
    engine |= {reading.IGNORE_CORRUPT_FILES(), reading.IGNORE_MISSING_FILES()}
    ours = spark_option_names(Files)
    assert {option.lower() for option in ours.values()} == {option.lower() for option in engine}
    not_options = {"type", "path", "format", "read", "watermark", "expect", "refresh", "on_bad_record"}
    living = {"on_new_columns", "schema_hints", "schema_location", "sample_files", "rescued_column"}
    assert set(Files.model_fields) == set(ours) | not_options | living | SET_IN_THE_SESSION


def test_links_that_lead_back_are_found(tmp_path):
    from penstock.sources.link_loops import repeats_in

    for name in ("in/a/b", "elsewhere/c", "beside"):
        (tmp_path / name).mkdir(parents=True)
    links = {
        "in/a/up": "..",
        "in/a/b/root": tmp_path,
        "in/out": tmp_path / "elsewhere",
        "elsewhere/back": tmp_path / "in",
    }
    for link, target in {**links, "in/self": "self", "in/gone": "nowhere", "in/fine": tmp_path / "beside"}.items():
        (tmp_path / link).symlink_to(target)
    found = {str(Path(one.link).relative_to(tmp_path)) for one in repeats_in([tmp_path / "in"])}
    assert found == {"in/a/up", "in/a/b/root", "in/out/back"}


TWICE = {
    "two links to one folder": ({"in/x": "data", "in/y": "data"}, "in", {"in/x", "in/y"}),
    "a link to a folder beside it": ({"in/x": "in/real"}, "in", {"in/x"}),
    "a link into what another leads to": ({"in/x": "data", "in/y": "data/sub"}, "in", {"in/x", "in/y"}),
    "two folders that a glob matches": ({"in/x": "data", "in/y": "data"}, "in/*", {"in/x", "in/y"}),
    "links to two folders": ({"in/x": "data", "in/y": "other"}, "in", set()),
    "a folder that Spark passes over": ({"in/.now": "in/real", "in/_old": "in/real"}, "in", set()),
    "a folder and one in it, without a link": ({}, "{in,in/real}", set()),
}


@pytest.mark.parametrize(("links", "path", "named"), TWICE.values(), ids=TWICE)
def test_a_folder_that_links_lead_to_twice_is_found(tmp_path, links, path, named):
    from penstock.problems import Fault
    from penstock.sources.link_loops import require_none

    for name in ("in/real", "data/sub", "other"):
        (tmp_path / name).mkdir(parents=True)
    for link, target in links.items():
        (tmp_path / link).symlink_to(tmp_path / target)
    if not named:
        require_none(f"{tmp_path}/{path}")
        return
    with pytest.raises(Fault, match="twice") as raised:
        require_none(f"{tmp_path}/{path}")
    assert raised.value.code == "FILES013"
    link = raised.value.fix.split("`")[1].removeprefix(f"rm {tmp_path}/")
    assert link in named
    (tmp_path / link).unlink()  # the fix helps
    require_none(f"{tmp_path}/{path}")


@pytest.mark.spark
def test_a_link_back_to_the_folder_does_not_multiply_rows(project_at, run_once, spark):
    root = project_at(
        """
        pipeline: copy
        sources: {rows: {type: files, path: in, format: text, recursive_file_lookup: true}}
        sinks: {out: {of: rows, type: files, path: out, format: text}}
        """,
        files={"in/a": "a\n"},
    )
    (root / "in/sub").mkdir()
    (root / "in/sub/up").symlink_to("..", target_is_directory=True)
    (problem,) = run_once(root).problems
    assert (problem.code, problem.where and problem.where.line) == ("FILES013", 2)
    assert problem.fix.startswith(f"remove the link: `rm {root}/in/sub/up`")
    (root / "in/sub/up").unlink()
    (root / "in/sub/beside").symlink_to(root / "in/other")
    place(root / "in/other/b", "b\n")
    (problem,) = run_once(root).problems
    assert (problem.code, "twice" in problem.message) == ("FILES013", True)
    (root / "in/sub/beside").unlink()
    (root / "in/other/b").unlink()
    assert run_once(root).ok
    assert [row.value for row in spark.read.text(str(root / "out")).collect()] == ["a"]


def test_a_link_to_itself_is_told_with_its_fix(project_at):
    from penstock.pipeline.load import load
    from penstock.prepare.judging import judge_all

    root = project_at(
        "pipeline: p\nsources: {rows: {type: files, path: in, format: text}}\nsinks: {o: {of: rows, type: console}}\n",
        files={"in/a": "a\n"},
    )
    (root / "in/self").symlink_to("self")
    (problem,) = judge_all(load(root)).problems
    assert problem.fix == f"remove it: `rm {root}/in/self`"
