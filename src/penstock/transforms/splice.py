"""Adds hidden columns to a SELECT, by its tokens: the user's text stays as it is, and so do Spark's messages on it.

A declared function gives a struct. Each call gets `.value`, and what a call raised goes into a column of its own.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

ERROR = "_penstock_error"
"""The first function that raised, and what: `STRUCT<name, reason>`, or NULL."""
CARRIED = "_carried"
"""Ends the name of a hidden column of the input that the row was made from."""
FUNCTION_FIX = "call it in the SELECT list of a step of its own, without GROUP BY or DISTINCT, and use the result later"
_SETS = frozenset({"UNION", "EXCEPT", "INTERSECT", "MINUS"})
_GROUPS = frozenset({"GROUP", "HAVING"})


class Misplaced(ValueError):
    """A declared function is called where its exceptions would be lost. Line and column count from 1 and 0."""

    def __init__(self, name: str, line: int, column: int) -> None:
        self.name, self.line, self.column = name, line, column
        super().__init__(f"`{name}` is called outside the SELECT list of a step that keeps rows as they are")


@dataclass(frozen=True)
class _Call:
    name: str
    start: int
    end: int
    """One past its closing parenthesis."""


@dataclass(frozen=True)
class _Select:
    """The places in a text that matter: where the outermost SELECT list ends, and which calls stand in it."""

    list_end: int | None
    """None where rows do not stay rows: a set operation, a grouping, DISTINCT."""
    calls: tuple[_Call, ...]


def with_hidden(sql: str, functions: Collection[str], carried: Collection[str] = ()) -> str:
    """The SELECT with the column ERROR, if it calls declared functions, and the columns that `carried` names.

    Raises Misplaced. Without anything to add, or where rows do not stay rows, the text is unchanged.
    """
    lowered = {name.lower(): name for name in functions}
    if not carried and not any(name in sql.lower() for name in lowered):
        return sql
    select = _read(sql, lowered)
    if select.list_end is None:
        return sql
    more = []
    if select.calls:
        more.append(f"{_first_error(sql, select.calls)} AS {ERROR}")
    more += [f"{column} AS {column}{CARRIED}" for column in carried]
    head, tail = sql[: select.list_end], sql[select.list_end :]
    added = "".join(f", {column}" for column in more)
    return f"{_with_values(head, select.calls)}{added} {tail}" if more else sql


def _read(sql: str, functions: dict[str, str]) -> _Select:
    tokens = _tokens(sql)
    begin, end, plain = _outermost_list(tokens)
    calls = []
    for index, token in enumerate(tokens[:-1]):
        if token.text.lower() not in functions or tokens[index + 1].text != "(" or sql[token.start] == "`":
            continue
        if not plain or not begin < index < end or _in_subquery(tokens, begin, index):
            raise Misplaced(functions[token.text.lower()], token.line, token.col - len(token.text))
        calls.append(_Call(functions[token.text.lower()], token.start, _closing(tokens, index + 1).end + 1))
    list_end = tokens[end].start if end < len(tokens) else len(sql.rstrip().rstrip(";"))
    return _Select(list_end if plain else None, tuple(calls))


def _tokens(sql: str) -> list[Token]:
    from sqlglot import tokenize

    return tokenize(sql, read="databricks")


def _outermost_list(tokens: list[Token]) -> tuple[int, int, bool]:
    """Between which tokens the outermost SELECT list stands, and whether each row of the input stays a row."""
    depths = _depth_at(tokens)
    words = [(index, token.text.upper()) for index, token in enumerate(tokens) if depths[index] == 0]
    selects = [index for index, word in words if word == "SELECT"]
    begin = selects[0] if selects else len(tokens)
    end = next((index for index, word in words if word == "FROM" and index > begin), len(tokens))
    distinct = begin + 1 < len(tokens) and tokens[begin + 1].text.upper() == "DISTINCT"
    changes = {word.split()[0] for _, word in words if word.strip()} & (_SETS | _GROUPS)  # `GROUP BY` is one token
    return begin, end, len(selects) == 1 and not distinct and not changes


def _depth_at(tokens: list[Token]) -> list[int]:
    depths, depth = [], 0
    for token in tokens:
        depth -= token.text == ")"
        depths.append(depth)
        depth += token.text == "("
    return depths


def _in_subquery(tokens: list[Token], begin: int, index: int) -> bool:
    """Does a parenthesis that is open at `index` start with SELECT?"""
    opened: list[bool] = []
    for position in range(begin, index):
        if tokens[position].text == "(":
            opened.append(tokens[position + 1].text.upper() in ("SELECT", "WITH"))
        elif tokens[position].text == ")" and opened:
            opened.pop()
    return any(opened)


def _closing(tokens: list[Token], opening: int) -> Any:
    depth = 0
    for token in tokens[opening:]:
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return token
    return tokens[-1]


def _with_values(text: str, calls: tuple[_Call, ...], offset: int = 0) -> str:
    for call in sorted(calls, key=lambda call: -call.end):
        if call.end - offset <= len(text):
            text = f"{text[: call.end - offset]}.value{text[call.end - offset :]}"
    return text


def _first_error(sql: str, calls: tuple[_Call, ...]) -> str:
    found = []
    for call in calls:
        inner = tuple(one for one in calls if call.start < one.start and one.end < call.end)
        text = _with_values(sql[call.start : call.end], inner, call.start)
        found.append(
            f"CASE WHEN {text}.error IS NOT NULL THEN named_struct('name', '{call.name}', 'reason', {text}.error) END"
        )
    return f"coalesce({', '.join(found)})" if len(found) > 1 else found[0]
