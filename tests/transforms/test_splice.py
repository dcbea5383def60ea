"""Hidden columns in a SELECT."""

from __future__ import annotations

import pytest

from penstock.transforms.splice import CARRIED, ERROR, Misplaced, with_hidden

ERROR_OF_F = "CASE WHEN f(a).error IS NOT NULL THEN named_struct('name', 'f', 'reason', f(a).error) END"


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_call_gets_its_value_and_its_error():
    assert flat(with_hidden("SELECT id, f(a) AS x FROM t", {"f"})) == (
        f"SELECT id, f(a).value AS x , {ERROR_OF_F} AS {ERROR} FROM t"
    )


def test_calls_inside_calls():
    text = flat(with_hidden("SELECT f(g(a)) FROM t", {"f", "g"}))
    assert text.startswith("SELECT f(g(a).value).value ,")
    assert "f(g(a).value).error" in text
    assert "WHEN g(a).error" in text


def test_a_carried_column():
    assert flat(with_hidden("SELECT * FROM t WHERE a > 1;", set(), ["_penstock"])) == (
        f"SELECT * , _penstock AS _penstock{CARRIED} FROM t WHERE a > 1;"
    )


def test_the_last_of_several_selects_that_stand_in_parentheses():
    sql = "WITH a AS (SELECT 1 AS x FROM b) SELECT x, (SELECT max(y) FROM c) AS z FROM a"
    assert flat(with_hidden(sql, set(), ["_penstock"])).endswith(f"AS z , _penstock AS _penstock{CARRIED} FROM a")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a FROM t GROUP BY a",
        "SELECT DISTINCT a FROM t",
        "SELECT a FROM t UNION ALL SELECT a FROM u",
    ],
)
def test_rows_that_do_not_stay_rows_carry_nothing(sql):
    assert with_hidden(sql, set(), ["_penstock"]) == sql


@pytest.mark.parametrize(
    ("sql", "line", "column"),
    [
        ("SELECT a FROM t WHERE f(a) > 1", 1, 22),
        ("SELECT a,\n  sum(f(a)) AS s\nFROM t GROUP BY a", 2, 6),
        ("SELECT DISTINCT f(a) FROM t", 1, 16),
        ("SELECT a, (SELECT max(f(b)) FROM u) AS x FROM t", 1, 22),
        ("WITH u AS (SELECT f(a) AS x FROM t) SELECT x FROM u", 1, 18),
        ("SELECT a FROM t JOIN u ON f(a) = b", 1, 26),
    ],
)
def test_where_an_exception_would_be_lost(sql, line, column):
    with pytest.raises(Misplaced) as told:
        with_hidden(sql, {"f"})
    assert (told.value.line, told.value.column) == (line, column)


def test_text_without_anything_to_add_stays_as_it_is():
    assert with_hidden("SELECT  a -- f(a)\nFROM t", {"g"}) == "SELECT  a -- f(a)\nFROM t"
    assert with_hidden("SELECT 'f(a)' AS f, `f`(a) AS y FROM t", {"f"}) == "SELECT 'f(a)' AS f, `f`(a) AS y FROM t"
