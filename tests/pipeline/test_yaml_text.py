"""YAML text → plain data with places; everything else is refused with one Problem."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.pipeline.yaml_text import parse, read_document
from penstock.problems import Problem, UserError, Where


def refused(text: str) -> Problem:
    with pytest.raises(UserError) as raised:
        parse(text, "p.yaml")
    (problem,) = raised.value.problems
    return problem


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("word", "word"),
        ("off", "off"),
        ("on", "on"),
        ("yes", "yes"),
        ("n", "n"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("5", 5),
        ("-5", -5),
        ("007", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("1.5", 1.5),
        (".5e3", 500.0),
        ("1e3", 1000.0),
        ("1e999", float("inf")),
        (".nan", ".nan"),
        (".inf", ".inf"),
        ("9" * 30, int("9" * 30)),
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00Z"),
        ("'5'", "5"),
        ('"true"', "true"),
    ],
)
def test_values_follow_yaml_1_2(written: str, value: Any) -> None:
    found = parse(f"key: {written}\n", "p.yaml").data["key"]
    assert found == value
    assert type(found) is type(value)


def test_a_number_too_long_for_python_is_no_integer() -> None:
    assert parse(f"key: {'9' * 5_000}", "p.yaml").data == {"key": float("inf")}


@pytest.mark.parametrize("key", ["on", "off", "5", "null", "~", "1.5", "true", "2026-01-31", "a.b.c", "'x y'"])
def test_keys_are_always_text(key: str) -> None:
    document = parse(f"{key}: 1\n", "p.yaml")
    assert document.data == {key.strip("'"): 1}
    assert document.key_at(key.strip("'")) == Where("p.yaml", 1, 1)


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
TOWER = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} {'[' * 45}*a{n - 1}{']' * 45}\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        pytest.param("", "SPEC002", 1, 1, id="empty"),
        pytest.param("# only\n# comments\n", "SPEC002", 1, 1, id="only comments"),
        pytest.param("---\n...\n", None, 1, 1, id="an empty document is null"),
        pytest.param("a: 1\n---\nb: 2\n", "SPEC005", 2, 1, id="two documents"),
        pytest.param("a:\n\tb: 1\n", "SPEC005", 2, 1, id="tab"),
        pytest.param("a:\n  b: 1\n\tc: 1\n", "SPEC005", 3, 1, id="tab after spaces"),
        pytest.param("a: 1\nb: 2\na: 3\n", "SPEC004", 3, 1, id="duplicate key"),
        pytest.param("{a: 1, a: 2}", "SPEC004", 1, 8, id="duplicate key in a flow mapping"),
        pytest.param("a: {x: 1,\n    'x': 2}", "SPEC004", 2, 5, id="duplicate quoted key"),
        pytest.param("a: 1\nb: x\0y\n", "SPEC006", 2, 5, id="NUL"),
        pytest.param("a: \x1b[0m\n", "SPEC006", 1, 4, id="escape character"),
        pytest.param("a: \ud800\n", "SPEC006", 1, 1, id="half a character"),
        pytest.param('a: "\\ud800"\n', "SPEC005", 1, 7, id="half an escaped character"),
        pytest.param("a: !!python/object/apply:os.system [ls]\n", "SPEC006", 1, 4, id="python tag"),
        pytest.param("a: !mine x\n", "SPEC006", 1, 4, id="own tag"),
        pytest.param("a: !!str 5\n", "SPEC006", 1, 4, id="standard tag"),
        pytest.param("a: &a [*a]\n", "SPEC006", 1, 4, id="list in itself"),
        pytest.param("a: &a {b: *a}\n", "SPEC006", 1, 4, id="mapping in itself"),
        pytest.param("a: &a {<<: *a}\n", "SPEC006", 1, 4, id="mapping merged into itself"),
        pytest.param("a: *nowhere\n", "SPEC005", 1, 4, id="alias of nothing"),
        pytest.param(BOMB, "SPEC006", None, None, id="billion laughs"),
        pytest.param(TOWER, "SPEC006", None, None, id="tower of aliases"),
        pytest.param(f"a: {'[' * 10_000}{']' * 10_000}\n", "SPEC006", 1, 53, id="10,000 brackets"),
        pytest.param("[" * 10_000, "SPEC006", 1, 51, id="10,000 open brackets"),
        pytest.param("- " * 10_000 + "x", "SPEC006", 1, 101, id="10,000 dashes"),
        pytest.param("x: [" + "1," * 100_001 + "]", "SPEC006", None, None, id="100,001 values"),
        pytest.param("? [a]\n: b\n", "SPEC003", 1, 3, id="list as key"),
        pytest.param("{[a]: b}", "SPEC003", 1, 2, id="list as flow key"),
        pytest.param("a: {<<: 5}\n", "SPEC003", 1, 9, id="merge of a number"),
        pytest.param("a: b: c\n", "SPEC005", 1, 5, id="two colons"),
        pytest.param("a: 'x\n", "SPEC005", 2, 1, id="open quote"),
        pytest.param("a: [1, 2\nb: 3\n", "SPEC005", 2, 2, id="open bracket"),
        pytest.param("a: @x\n", "SPEC005", 1, 4, id="reserved character"),
        pytest.param("%YAML 9.9\n---\na: 1\n", "SPEC005", 1, 1, id="future YAML"),
    ],
)
def test_refuses_all_but_plain_yaml_at_the_right_place(
    text: str, code: str | None, line: int | None, column: int | None
) -> None:
    if code is None:
        assert parse(text, "p.yaml").data is None
        return
    problem = refused(text)
    assert problem.code == code
    assert problem.message
    assert problem.fix
    assert problem.where is not None
    if line is not None:
        assert (problem.where.line, problem.where.column) == (line, column)


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "SPEC006"),
        ("größe: 1".encode("latin-1"), "SPEC006"),
        ("a: 1".encode("utf-16"), "SPEC006"),
        (b"a: 1\n" * 400_000, "SPEC006"),
        (b"", "SPEC002"),
    ],
    ids=["binary", "latin-1", "utf-16", "2 MB", "empty"],
)
def test_refuses_files_that_are_no_text(tmp_path: Path, raw: bytes, code: str) -> None:
    (tmp_path / "p.yaml").write_bytes(raw)
    with pytest.raises(UserError) as raised:
        read_document(tmp_path / "p.yaml", "p.yaml")
    (problem,) = raised.value.problems
    assert (problem.code, problem.where) == (code, Where("p.yaml"))


def test_a_missing_file_and_a_folder_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(UserError) as raised:
            read_document(path, path.name)
        assert raised.value.problems[0].code == "SPEC001"


def test_a_byte_order_mark_and_windows_lines_are_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: two\r\n")
    document = read_document(tmp_path / "p.yaml", "p.yaml")
    assert document.data == {"a": 1, "b": "two"}
    assert document.key_at("a") == Where("p.yaml", 1, 1)
    assert document.at("b") == Where("p.yaml", 2, 4, text=True)


def test_every_value_and_key_has_its_place() -> None:
    document = parse("größe:\n  - {x: 1, y: [2, 3]}\n  - 'z'\n", "p.yaml")
    assert document.at() == Where("p.yaml", 1, 1)
    assert document.key_at("größe") == Where("p.yaml", 1, 1)
    assert document.at("größe", 0, "y", 1) == Where("p.yaml", 2, 19, text=True)
    assert document.key_at("größe", 0, "y") == Where("p.yaml", 2, 12)
    assert document.at("größe", 1) == Where("p.yaml", 3, 6, text=True)
    assert document.at("größe", 1, "none", "such") == document.at("größe", 1)


@pytest.mark.parametrize(
    ("written", "line", "column", "text"),
    [
        pytest.param("a: SELECT x\n", 1, 4, True, id="plain"),
        pytest.param("a: 'SELECT x'\n", 1, 5, True, id="single quotes"),
        pytest.param('a: "SELECT x"\n', 1, 5, True, id="double quotes"),
        pytest.param("a: größe 'x' 🙂\n", 1, 4, True, id="plain, not ASCII"),
        pytest.param("é: 'größe 🙂'\n", 1, 5, True, id="quoted, not ASCII"),
        pytest.param("a: 'it''s'\n", 1, 5, False, id="doubled quote"),
        pytest.param('a: "x\\ty"\n', 1, 5, False, id="escape"),
        pytest.param("a: SELECT\n  x\n", 1, 4, False, id="plain on two lines"),
        pytest.param("a: |\n  SELECT\n    x\n", 2, 3, True, id="block"),
        pytest.param("a: |-  # why\n  SELECT\n", 2, 3, True, id="block with a comment"),
        pytest.param("a: |\n\n  SELECT\n", 2, 3, True, id="block that starts with an empty line"),
        pytest.param("a: |2\n    SELECT\n", 2, 3, True, id="block with its indentation written"),
        pytest.param("a: >\n  SELECT\n  x\n", 2, 3, False, id="folded block"),
        pytest.param("a: |\nb: 1\n", 1, 4, False, id="empty block"),
        pytest.param("a: &x SELECT\n", 1, 4, False, id="anchored"),
    ],
)
def test_places_inside_a_text_are_counted_only_where_the_text_stands_as_it_is(
    written: str, line: int, column: int, text: bool
) -> None:
    document = parse(written, "p.yaml")
    (key,) = (key for key in document.data if key != "b")
    where = document.at(key)
    assert (where.line, where.column, where.text) == (line, column, text)
    if text:
        value = document.data[key]
        for number, content in enumerate(value.rstrip("\n").split("\n"), start=1):
            place = where.inside(number, 0)
            assert written.split("\n")[place.line - 1][place.column - 1 :].startswith(content)


def test_merge_keys_give_values_and_the_places_of_both() -> None:
    document = parse(
        "base: &base {x: 1, y: 2}\nother: &other {y: 3, z: 4}\nitem:\n  x: 9\n  <<: [*base, *other]\n", "p.yaml"
    )
    assert document.data["item"] == {"x": 9, "y": 2, "z": 4}
    assert document.at("item") == Where("p.yaml", 4, 3)
    assert document.at("item", "x") == Where("p.yaml", 4, 6, text=True)
    assert document.at("item", "y") == Where("p.yaml", 1, 23, text=True)
    assert document.key_at("item", "z") == Where("p.yaml", 2, 22)


def test_a_quoted_merge_key_is_a_key() -> None:
    assert parse("'<<': 1", "p.yaml").data == {"<<": 1}


def test_an_overlaid_document_knows_the_places_of_both() -> None:
    document = parse("a: 1\nb: 2\nover:\n  b: 3\n", "p.yaml").overlaid({"a": 1, "b": 3}, ("over",))
    assert document.at("a").line == 1
    assert document.at("b") == Where("p.yaml", 4, 6, text=True)
    assert document.key_at("b") == Where("p.yaml", 4, 3)


def plain_or_refused(text: str) -> None:
    try:
        parse(text, "p.yaml")
        return
    except UserError as error:
        problems = error.problems
    assert problems
    for problem in problems:
        assert problem.code.startswith("SPEC")
        assert problem.message
        assert problem.fix
        assert problem.where is not None
        assert problem.where.line >= 1
        assert problem.where.column >= 1


@given(st.text())
def test_any_text_is_a_document_or_a_problem(text: str) -> None:
    plain_or_refused(text)


@given(st.text(alphabet="ab:-?[]{},&*!|>'\"%@`#<~\n \t\\$0.\x85\u2028\ud800\x00"))
def test_any_punctuation_is_a_document_or_a_problem(text: str) -> None:
    plain_or_refused(text)


WORDS = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cc", "Cs"]), max_size=8)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(WORDS, DATA))
def test_plain_data_comes_back_as_it_was_written(data: dict[str, Any]) -> None:
    document = parse(json.dumps(data, indent=2), "p.yaml")  # JSON is YAML 1.2
    assert document.data == data
    assert all((*path,) in document.values for path in paths_of(data))


def paths_of(data: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(found for key, value in inner for found in paths_of(value, (*path, key)))]
