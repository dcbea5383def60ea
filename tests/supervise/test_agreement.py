"""Dead letters against the data path."""

from __future__ import annotations

from penstock.supervise.agreement import disagreements
from penstock.supervise.query_view import QueryView


def views(filtered: int, written: int, end: str = "9") -> list[QueryView]:
    data = QueryView("p", "scored", "1", "exactly-once", set_aside={"orders": filtered}, read={"kafka": (10, "9")})
    aside = QueryView("p", "orders_dead_letters", "2", "exactly-once", rows_out=written, read={"kafka": (10, end)})
    return [data, aside]


def test_equal_counts_agree():
    assert list(disagreements(views(3, 3))) == []


def test_different_counts_of_the_same_rows_are_told():
    told = list(disagreements(views(3, 2)))
    assert [(problem.code, problem.severity) for problem in told] == [("RECORD005", "warning")]


def test_nothing_is_said_while_one_has_read_more():
    assert list(disagreements(views(3, 2, end="7"))) == []
