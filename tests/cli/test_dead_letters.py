"""`penstock dead-letters` as a user meets it: what it shows, what it says of bad input, and how fast."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.dead_letters.letters import arrow_schema
from penstock.dead_letters.replay.homes import columns_of

PIPELINE = """\
pipeline: shop
sources:
  orders:
    type: files
    path: in
    format: {type: json, schema: "id BIGINT"}
    on_bad_record: dead_letter
sinks: {out: {of: orders, type: files, path: out, format: json}}
"""
AT = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)


def letter(raw: bytes | None, number: int = 0, **more: object) -> dict[str, object]:
    made = {
        "id": sha256(f"{number}{raw!r}".encode()).hexdigest(),
        "node": "orders",
        "check": "decoded",
        "reason": "is not JSON",
        "raw": raw,
        "at": AT,
    }
    return dict.fromkeys(arrow_schema().names) | made | more


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("penstock.yaml", "name: shop\n"), ("pipelines/shop.yaml", PIPELINE), ("in/a.json", "{\n[\n")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def put(root: Path, letters: list[dict[str, object]], batch: int = 0, log: str | None = None) -> None:
    """Writes letters as Spark's file sink does: a Parquet file, and its name in the log of the folder."""
    folder = root / "dead_letters/shop/orders"
    (folder / "_spark_metadata").mkdir(parents=True, exist_ok=True)
    file = folder / f"part-{batch}.parquet"
    pq.write_table(pa.Table.from_pylist(letters, arrow_schema()), file, use_deprecated_int96_timestamps=True)
    entry = json.dumps({"path": file.as_uri(), "size": 1, "action": "add"})
    (folder / "_spark_metadata" / (log or str(batch))).write_text(f"v1\n{entry}\n")


@pytest.fixture
def two(project: Path) -> Path:
    file = (project / "in/a.json").as_uri()
    put(project, [letter(b"{", file=file), letter(b"\xff\x00", 1, file=file, check="other")])
    return project


def test_no_dead_letters_is_well(penstock, project):
    ended = penstock("dead-letters", "list", at=project)
    assert (ended.code, ended.out) == (0, "✓ no dead letters\n")
    assert penstock("dead-letters", "list", "--json").json == {"ok": True, "letters": 0, "groups": []}


def test_a_broken_file_does_not_hide_the_letters_of_other_pipelines(penstock, two):
    (two / "pipelines/other.yaml").write_text("pipeline: [\n")
    ended = penstock("dead-letters", "list", "--json", at=two)
    assert (ended.code, ended.json["ok"], ended.json["letters"]) == (1, False, 2)
    (problem,) = ended.json["problems"]
    assert problem["where"]["file"] == "pipelines/other.yaml"
    ended = penstock("dead-letters", "list")
    assert (ended.code, "2 dead letters" in ended.out, problem["message"] in ended.err) == (1, True, True)
    ended = penstock("dead-letters", "show", "--json")
    assert (ended.code, ended.json["total"], ended.json["problems"]) == (1, 2, [problem])
    ended = penstock("dead-letters", "export")
    assert (ended.code, len(ended.out.splitlines()), problem["message"] in ended.err) == (1, 2, True)
    ended = penstock("dead-letters", "replay", "--check", "decoded", "--dry-run", "--json")
    assert (ended.code, ended.json["counts"], ended.json["problems"]) == (1, {"would be sent": 1}, [problem])
    ended = penstock("dead-letters", "show", "--check", "unheard", "--json")
    assert [one["code"] for one in ended.json["problems"]] == [problem["code"], "DEADLETTER001"]
    assert penstock("dead-letters", "list", "shop", "--json").code == 0  # not asked for, not in the way
    (two / "pipelines/shop.yaml").write_text("nothing\n")
    assert penstock("dead-letters", "list").code == 1


def test_pipelines_of_one_name_are_left_out(penstock, two):
    (two / "pipelines/again.yaml").write_text(PIPELINE)
    ended = penstock("dead-letters", "list", "--json", at=two)
    assert (ended.code, [one["code"] for one in ended.json["problems"]]) == (1, ["GRAPH003"])


def test_list_counts_by_node_and_check(penstock, two):
    groups = penstock("dead-letters", "list", "--json", at=two).json["groups"]
    assert [(group["node"], group["check"], group["letters"], group["replayed"]) for group in groups] == [
        ("orders", "decoded", 1, 0),
        ("orders", "other", 1, 0),
    ]
    assert groups[0]["first"] == "2026-01-31T12:30:00+00:00"
    shown = penstock("dead-letters", "list").out
    assert "is not JSON" in shown
    assert "2 dead letters" in shown


def test_only_what_the_log_names_counts_and_a_compact_log_replaces_those_before_it(penstock, project):
    put(project, [letter(b"a", 1)], 0)
    put(project, [letter(b"b", 2)], 1)
    log = project / "dead_letters/shop/orders/_spark_metadata"
    (log / "1.compact").write_text((log / "1").read_text())
    put(project, [letter(b"c", 3)], 2)
    (log / "2.crc").write_text("")
    put(project, [letter(b"of a failed attempt", 4)], 3)
    (log / "3").unlink()
    letters = penstock("dead-letters", "show", "--json", at=project).json["letters"]
    assert {one["raw"] for one in letters} == {"b", "c"}


def test_what_was_read_again_counts_once_and_what_is_alike_counts_each_time(penstock, project):
    again = [letter(b"{", file="file:///in/a.json"), letter(b"{", file="file:///in/a.json")]
    put(project, again, 0)
    put(project, [one | {"at": AT.replace(hour=13)} for one in again], 1)
    put(project, [letter(b"x", 2, topic="t", partition=0, offset=1)] * 2, 2)
    assert penstock("dead-letters", "list", "--json", at=project).json["letters"] == 3
    assert penstock("dead-letters", "show", "--json").json["total"] == 3


def test_rows_that_a_sink_refused_are_read_from_their_batches(penstock, project):
    folder = project / "dead_letters/shop/out/query=1/batch=0"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([letter(b"{}", node="out", check="sent")], arrow_schema()), folder / "part-0")
    (folder / "_SUCCESS").touch()
    groups = penstock("dead-letters", "list", "--json", at=project).json["groups"]
    assert [(group["node"], group["check"], group["letters"]) for group in groups] == [("out", "sent", 1)]
    ended = penstock("dead-letters", "replay", "--json")
    assert (ended.code, ended.codes) == (1, ["DEADLETTER005"])


def test_show_gives_the_line_the_text_or_hex(penstock, two):
    shown = penstock("dead-letters", "show", at=two).out
    assert "in/a.json:1" in shown
    assert "ff 00" in shown
    one = penstock("dead-letters", "show", letter(b"{")["id"][:8], "--json").json
    assert (one["total"], one["letters"][0]["raw"], one["letters"][0]["lines"]) == (1, "{", [1])


def test_markup_in_a_record_is_data(penstock, project):
    put(project, [letter(b"[bold]x[/] [/nothing]", reason="[red]no[/]")])
    assert "[bold]x[/] [/nothing]" in penstock("dead-letters", "show", at=project).out
    assert "[red]no[/]" in penstock("dead-letters", "list").out


def test_export_mend_replay_and_not_twice(penstock, two):
    exported = penstock("dead-letters", "export", at=two).out
    first, second = map(json.loads, exported.splitlines())
    assert "raw" in first or "raw" in second
    mended = [one | {"raw": '{"id": 1}'} if one.get("raw") else one for one in (first, second)]
    (two / "mended.jsonl").write_text("".join(json.dumps(one) + "\n" for one in mended))
    ended = penstock("dead-letters", "replay", "--from", "mended.jsonl", "--json")
    assert (ended.code, ended.json["counts"]) == (0, {"unchanged": 1, "sent": 1})
    (new,) = (two / "in").glob("penstock-replay-*.json")
    assert new.read_text() == '{"id": 1}\n'
    ended = penstock("dead-letters", "replay", "--from", "mended.jsonl")
    assert ended.code == 0
    assert "sent before" in ended.out
    assert len(list((two / "in").iterdir())) == 2
    assert len(penstock("dead-letters", "export", "--json").json) == 1


def test_a_record_that_is_no_text_cannot_go_into_a_text_file(penstock, two):
    ended = penstock("dead-letters", "replay", "--check", "other", "--json", at=two)
    assert (ended.code, ended.codes) == (1, ["DEADLETTER005"])
    ended = penstock("dead-letters", "replay", "--json")
    assert (ended.code, ended.json["counts"]) == (0, {"sent": 1, "cannot be sent": 1})
    assert [problem["severity"] for problem in ended.json["problems"]] == ["warning"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("show", "feed"), "DEADLETTER002"),
        (("show", "abc"), "DEADLETTER002"),
        (("show", "--node", "ordesr"), "DEADLETTER002"),
        (("list", "--node", "ordesr"), "DEADLETTER002"),
        (("list", "nothing"), "PROJECT004"),
        (("show", "--node", "out"), "DEADLETTER001"),
        (("replay", "--check", "nothing"), "DEADLETTER001"),
        (("replay", "--id", "feedfeed"), "DEADLETTER002"),
        (("export", "--pipeline", "nothing"), "PROJECT004"),
        (("replay", "--from", "nothing.jsonl"), "DEADLETTER004"),
    ],
)
def test_what_is_not_there_is_told(arguments, code, penstock, two):
    ended = penstock("dead-letters", *arguments, "--json", at=two)
    assert (ended.code, ended.codes) == (1, [code])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", 1),
        ("{\n", 1),
        ("[]\n", 1),
        ('{"raw": "x"}\n', 1),
        ('\n{"id": "abc", "raw": "x"}\n', 2),
        ('{"id": "ID"}\n', 1),
        ('{"id": "ID", "raw": {"id": 1}}\n', 1),
        ('{"id": "ID", "raw_base64": "%"}\n', 1),
        (b"\xff", 1),
    ],
)
def test_a_broken_file_of_mended_letters_is_told_at_its_line(text, line, penstock, two):
    content = text if isinstance(text, bytes) else text.replace("ID", str(letter(b"{")["id"])).encode()
    (two / "mended.jsonl").write_bytes(content)
    ended = penstock("dead-letters", "replay", "--from", "mended.jsonl", "--json", at=two)
    assert (ended.code, ended.codes) == (1, ["DEADLETTER004"])
    assert ended.json["problems"][0]["where"]["line"] == line


def test_a_letter_twice_in_the_file_is_refused(penstock, two):
    line = json.dumps({"id": letter(b"{")["id"], "raw": "{}"}) + "\n"
    (two / "mended.jsonl").write_text(line * 2)
    ended = penstock("dead-letters", "replay", "--from", "mended.jsonl", "--json", at=two)
    assert (ended.code, ended.codes) == (1, ["DEADLETTER004"])


def test_a_broken_letter_file_is_told(penstock, two):
    (two / "dead_letters/shop/orders/part-0.parquet").write_bytes(b"no parquet")
    ended = penstock("dead-letters", "list", "--json", at=two)
    assert (ended.code, ended.codes) == (1, ["DEADLETTER003"])


def test_a_folder_that_takes_no_file_is_told_and_nothing_is_noted_as_sent(penstock, two):
    (two / "in/a.json").unlink()
    (two / "in").rmdir()
    (two / "in").write_text("a file in its place")
    ended = penstock("dead-letters", "replay", "--check", "decoded", "--json", at=two)
    assert (ended.code, ended.codes) == (3, ["DEADLETTER006"])
    (two / "in").unlink()
    (two / "in").mkdir()
    assert penstock("dead-letters", "replay", "--check", "decoded", "--json").json["counts"] == {"sent": 1}


def test_a_broken_note_is_told(penstock, two):
    assert penstock("dead-letters", "replay", "--check", "decoded", at=two).code == 0
    (note,) = (two / "storage/replays/shop").iterdir()
    note.write_text("{")
    ended = penstock("dead-letters", "replay", "--json")
    assert (ended.code, ended.codes) == (1, ["DEADLETTER007"])


def test_two_replays_at_a_time_are_refused(penstock, two):
    import fcntl

    folder = two / "storage/locks"
    folder.mkdir(parents=True)
    with (folder / "shop.replay.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ended = penstock("dead-letters", "replay", "--json", at=two)
    assert (ended.code, ended.codes) == (1, ["DEADLETTER008"])


def test_names_with_braces_and_folders_with_blanks(penstock, project):
    (project / "pipelines/shop.yaml").write_text(PIPELINE.replace("path: in", "path: '*/{b c,d}'"))
    (project / "x/b c").mkdir(parents=True)
    put(project, [letter(b"{}", file=(project / "x/b c/a.jsonl").as_uri())])
    assert penstock("dead-letters", "replay", "--json", at=project).json["counts"] == {"sent": 1}
    assert [file.suffix for file in (project / "x/b c").iterdir()] == [".jsonl"]


def test_packed_csv_goes_back_packed_with_the_header_of_its_file(penstock, project):
    text = PIPELINE.replace("type: json, schema", "type: csv, header: true, encoding: ISO-8859-1, schema")
    (project / "pipelines/shop.yaml").write_text(text)
    file = project / "in/a.csv.gz"
    file.write_bytes(gzip.compress("né\nx\ny\nx\n".encode("iso-8859-1")))
    put(project, [letter(b"x", file=file.as_uri()), letter("ü".encode(), 1, file=file.as_uri())])
    shown = penstock("dead-letters", "show", "--json", at=project).json["letters"]
    assert sorted(one["lines"] for one in shown) == [[], [2, 4]]
    assert penstock("dead-letters", "replay", "--json").json["counts"] == {"sent": 2}
    (new,) = (project / "in").glob("penstock-replay-*.csv.gz")
    assert sorted(gzip.decompress(new.read_bytes()).decode("iso-8859-1").splitlines()) == ["né", "x", "ü"]


def test_a_file_that_the_source_would_not_see_is_not_written(penstock, project):
    text = PIPELINE.replace("path: in", "path: in\n    path_glob_filter: 'orders-*.json'")
    (project / "pipelines/shop.yaml").write_text(text)
    put(project, [letter(b"{}", file=(project / "in/orders-1.json").as_uri())])
    ended = penstock("dead-letters", "replay", "--json", at=project)
    assert (ended.code, ended.codes) == (1, ["DEADLETTER005"])
    assert "would not see" in ended.json["problems"][0]["message"]


@pytest.mark.parametrize("arguments", [("list", "--limit", "0"), ("show", "--limit", "x"), ("replay", "--no"), ("no",)])
def test_wrong_usage_is_exit_code_2(arguments, penstock, project):
    assert penstock("dead-letters", *arguments, at=project).code == 2


@pytest.mark.parametrize("command", ["list", "show", "export", "replay"])
def test_every_command_takes_json(command, penstock):
    ended = penstock("dead-letters", command, "--help")
    assert ended.code == 0
    assert "--json" in ended.out


def test_a_list_needs_no_jvm_and_nothing_that_is_slow_to_load(two):
    code = """if True:
        import sys
        from penstock.cli.main import main
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code
        # Either takes longer to import than all the rest.
        assert not {"pyspark", "pandas"} & set(sys.modules)
    """
    command = [sys.executable, "-c", code, "dead-letters", "list"]
    subprocess.run(command, cwd=two, check=True, capture_output=True)


def test_columns_of_a_ddl_text():
    ddl = "id BIGINT, `a, b` STRING COMMENT 'x', c STRUCT<d: INT, e: MAP<STRING, INT>>, f DECIMAL(10, 2), g: INT"
    assert columns_of(ddl) == ["id", "a, b", "c", "f", "g"]
    assert columns_of("a STRING COMMENT 'with, a (comma', `b``c` ARRAY<ARRAY<INT>>, order INT") == ["a", "b`c", "order"]
    assert columns_of("a STRING COMMENT 'open") == []
    assert columns_of(None) == []
