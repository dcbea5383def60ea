"""Signature against signature: may the state of a checkpoint be used by the query as it is now? Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from penstock.facts.signature import Signature, StateOperator
from penstock.plan.verdict import PlanFinding, Verdict
from penstock.problems import Where

Locate = Callable[[int], tuple[str, Where | None]]
"""The step of an operator with state, by its number, and its place."""
_NOUNS = {
    "aggregate": "aggregation",
    "session": "session aggregation",
    "join": "stream-stream join",
    "deduplicate": "deduplication",
    "deduplicate_within_watermark": "deduplication within the watermark",
    "limit": "limit",
    "process": "`process` step",
    "pandas_state": "`pandas_state` step",
}
_VERBS = {"join": "joins on", "deduplicate": "compares", "deduplicate_within_watermark": "compares"}
_PROCESSING = ("process", "pandas_state")
_INTEGERS = frozenset({"byte", "short", "integer", "long"})
_WIDENED = re.compile(r"(?:sum|avg|count)\(([\w.]+)(?:, [^()]*)?\)$")
"""Functions whose buffers are the same for all integers."""
_WINDOW = re.compile(r"\bwindow\(")
_LONG = 60
_HASH = re.compile(r" #[0-9a-f]{8,16}")


def signature_findings(
    before: Signature, now: Signature, query: str, reset: str, locate: Locate
) -> Iterator[PlanFinding]:
    """What differs, and what follows. `reset` is the command that begins a new generation."""
    yield from _operators(before, now, query, reset, locate)
    if now.is_stateful or before.is_stateful:
        yield from _watermarks(before, now, query, reset, locate)
        yield from _types(before, now, query, reset, locate)
        yield from _code(before, now, query, reset, locate)
    yield from _filters(before, now, query, locate)
    yield from _output(before, now, query, locate)


def _operators(before: Signature, now: Signature, query: str, reset: str, locate: Locate) -> Iterator[PlanFinding]:
    old, new = before.operators, now.operators
    if [one.kind for one in old] != [one.kind for one in new]:
        node, where = locate(len(new) - 1) if new else (query, None)
        if not old:
            message = f"`{query}` keeps state now ({_kinds(new)}), and its checkpoint was created without state"
        elif not new:
            message = f"`{query}` keeps no state any more, and its checkpoint holds the state of {_kinds(old)}"
        else:
            message = f"`{query}` keeps state for {_kinds(new)}, and its checkpoint holds that of {_kinds(old)}"
        fix = f"undo the edit, or run `{reset}` to build the state from all input"
        yield PlanFinding("PLAN001", node, message, fix, "restart", where, _kinds(old), _kinds(new))
        return
    for number, (was, is_) in enumerate(zip(old, new, strict=True)):
        if was != is_:
            # One edit is one finding: another key changes what is stored too.
            yield from islice(_operator(was, is_, reset, *locate(number)), 1)


def _operator(
    was: StateOperator, is_: StateOperator, reset: str, node: str, where: Where | None
) -> Iterator[PlanFinding]:
    undo = f"undo the edit, or run `{reset}` to build the state from all input"
    noun = _NOUNS[is_.kind]

    def found(code: str, message: str, before: str, now: str, verdict: Verdict = "restart") -> PlanFinding:
        return PlanFinding(code, node, message, undo, verdict, where, _readable(before), _readable(now))

    if was.keys != is_.keys:
        yield _keys(was, is_, found)
    if was.functions != is_.functions:
        what = "in another order" if sorted(was.functions) == sorted(is_.functions) else "other functions"
        if is_.kind in _PROCESSING:
            message = f"the {noun} in `{node}` keeps other columns in its state. Its code finds them by their position"
        else:
            message = (
                f"the {noun} in `{node}` computes {what}. Spark would put the values that its state holds into the new"
                " functions by their position"
            )
        yield found("PLAN003", message, _listed(was.functions), _listed(is_.functions))
    for side, (old, new) in enumerate(zip(was.stored, is_.stored, strict=False)):
        if is_.kind in _PROCESSING:
            yield from _read(old, new, noun, node, found)
        elif old != new:
            name = ("left", "right")[side]
            message = f"the {noun} in `{node}` keeps other columns of its {name} side than its state holds"
            yield found("PLAN004", message, _listed(old), _listed(new))
    if was.detail != is_.detail:
        code = {"limit": "PLAN024"}.get(is_.kind, "PLAN009")
        message = f"the {noun} in `{node}` was `{was.detail}` when its state was built, and is `{is_.detail}` now"
        yield found(code, message, was.detail, is_.detail)
    if was.rows != is_.rows:
        message = (
            f"the {noun} in `{node}` reads rows that are multiplied, joined or looked up in another way than those that"
            " its state was built from"
        )
        yield found("PLAN030", message, was.rows or "plain rows", is_.rows or "plain rows")
    if was.condition != is_.condition:
        message = (
            f"the condition of the {noun} in `{node}` has changed: rows that its state has dropped already, and rows"
            " that were matched already, followed the old one"
        )
        yield found("PLAN009", message, was.condition, is_.condition)


def _read(
    old: Sequence[str], new: Sequence[str], noun: str, node: str, found: Callable[..., PlanFinding]
) -> Iterator[PlanFinding]:
    """A processor reads columns by their names: one more is no matter, another meaning of one is."""
    before, now = (dict(one.split("=", 1) for one in columns) for columns in (old, new))
    other = [name for name, text in now.items() if before.get(name, text) != text]
    if other:
        names = ", ".join(f"`{name}`" for name in other)
        message = f"the {noun} in `{node}` reads {names} with another meaning than the rows that built its state"
        given = (_listed([f"{name}: {columns[name]}" for name in other]) for columns in (before, now))
        yield found("PLAN030", message, *given)


def _keys(was: StateOperator, is_: StateOperator, found: Callable[..., PlanFinding]) -> PlanFinding:
    noun, verb = _NOUNS[is_.kind], _VERBS.get(is_.kind, "groups by")
    before, now = _listed(was.keys), _listed(is_.keys)
    others = [one for one in was.keys if not _WINDOW.search(one)] == [
        one for one in is_.keys if not _WINDOW.search(one)
    ]
    same = sorted(was.keys) == sorted(is_.keys)
    if others and len(was.keys) == len(is_.keys) and not same:
        message = f"the {noun} has other windows than its state. Spark would mix windows of both kinds"
        return found("PLAN005", message, before, now)
    order = "the same keys in another order" if same else "other keys"
    message = f"the {noun} {verb} {order}. Its state is found by the old keys"
    return found("PLAN002", message, before, now)


def _watermarks(before: Signature, now: Signature, query: str, reset: str, locate: Locate) -> Iterator[PlanFinding]:
    node, where = locate(0) if now.operators else (query, None)
    old = {one.column: one.delay for one in before.watermarks}
    new = {one.column: one.delay for one in now.watermarks}
    if old.keys() != new.keys():
        before_, now_ = _listed(sorted(old)), _listed(sorted(new))
        if old.keys() - new.keys() and new.keys() - old.keys():
            message = f"the watermark of `{query}` follows another column, and its checkpoint holds that of the old one"
            fix = f"undo the edit, or run `{reset}` to build the state from all input"
            yield PlanFinding("PLAN006", node, message, fix, "restart", where, _readable(before_), _readable(now_))
        else:
            verb = "has more watermarks" if len(new) > len(old) else "has fewer watermarks"
            message = f"`{query}` {verb} than before: late rows and the size of its state change from here on"
            fix = "nothing, if this is meant"
            yield PlanFinding("PLAN007", node, message, fix, "warn", where, _readable(before_), _readable(now_))
        return
    for column, delay in new.items():
        if delay != old[column]:
            message = f"the watermark on `{column}` waits {delay}, and waited {old[column]}: it counts from here on"
            yield PlanFinding("PLAN007", node, message, "nothing, if this is meant", "warn", where, old[column], delay)


def _types(before: Signature, now: Signature, query: str, reset: str, locate: Locate) -> Iterator[PlanFinding]:
    for number, operator in enumerate(now.operators):
        texts = (*operator.keys, *operator.functions, *(column for side in operator.stored for column in side))
        node, where = locate(number)
        for column, type_ in now.types.items():
            old = before.types.get(column)
            if old is None or old == type_:
                continue
            if any(_mentions(text, column) and not _fits(text, column, old, type_) for text in texts):
                shown, was = (one if len(one) < _LONG else f"{one[:_LONG]}…" for one in (type_, old))
                message = f"`{column}` is {shown} now, and the state of `{query}` was built when it was {was}"
                fix = f"declare it as {was} in the source again, or run `{reset}`"
                yield PlanFinding(
                    "PLAN002", node, message, fix, "restart", where, f"{column} {was}", f"{column} {shown}"
                )


def _fits(text: str, column: str, old: str, new: str) -> bool:
    """Is a function's buffer the same with a column of another type?"""
    found = _WIDENED.match(text)
    if found is None or found[1] != column:
        return False
    return text.startswith("count") or {old, new} <= _INTEGERS


def changed_code(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of code that the checkpoint has not seen, under whatever name."""
    known = set(before.values())
    return sorted(name for name, hashed in now.items() if hashed not in known)


def _code(before: Signature, now: Signature, query: str, reset: str, locate: Locate) -> Iterator[PlanFinding]:
    every = changed_code(before.code, now.code)
    for number, operator in enumerate(now.operators):
        node, where = locate(number)
        texts = (*operator.keys, *operator.functions, operator.condition, operator.rows,
                 *(column for side in operator.stored for column in side))  # fmt: skip
        changed = [one for one in every if _may_be_in(one, texts)]
        if not changed:
            continue
        names = ", ".join(f"`{name}`" for name in changed)
        if operator.kind in _PROCESSING:
            message = f"the code or the options of {names} have changed. `{node}` runs on the state of the old ones"
            yield PlanFinding("PLAN021", node, message, "nothing, if the new code can read that state", "warn", where)
        elif any("PythonUDF" in text for text in texts):
            message = f"the code of {names} has changed, and the state of `{node}` was built with its old results"
            fix = f"undo the edit; or run `{reset}`; or, if its results are the same, set `accept: [PLAN020]`"
            yield PlanFinding("PLAN020", node, message, fix, "restart", where)


def _may_be_in(code: str, texts: Sequence[str]) -> bool:
    """Code of a function has the name by which SQL calls it: `name()`. Of other code, the plan has no name."""
    return not code.endswith("()") or any(f"name={code[:-2]}," in f"{text}," for text in texts)


def _filters(before: Signature, now: Signature, query: str, locate: Locate) -> Iterator[PlanFinding]:
    if before.filters == now.filters:
        return
    node, where = locate(0) if now.operators else (query, None)
    verdict: Verdict = "warn" if now.operators else "resume"
    old = [one for one in before.filters if one not in now.filters]
    new = [one for one in now.filters if one not in before.filters]
    held = " Its state holds what the old filter let through." if now.operators else ""
    message = f"`{query}` filters its rows in another way from here on.{held}"
    yield PlanFinding(
        "PLAN008",
        node,
        message,
        "nothing, if this is meant",
        verdict,
        where,
        _readable(_listed(old)),
        _readable(_listed(new)),
    )


def _output(before: Signature, now: Signature, query: str, locate: Locate) -> Iterator[PlanFinding]:
    old = {one.name: (one.type, one.expression) for one in before.output}
    new = {one.name: (one.type, one.expression) for one in now.output}
    changed = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if not changed or before.operators != now.operators:
        return
    node, where = locate(len(now.operators) - 1) if now.operators else (query, None)
    names = ", ".join(f"`{name}`" for name in changed)
    message = f"{names}: added, removed or computed in another way, for rows from here on"
    yield PlanFinding("PLAN023", node, message, "nothing, if this is meant", "resume", where)


def _mentions(text: str, column: str) -> bool:
    """Fields of a struct have entries of their own."""
    return re.search(rf"(?<![\w.]){re.escape(column)}(?![\w.])", text) is not None


def _kinds(operators: Sequence[StateOperator]) -> str:
    return ", ".join(f"a {_NOUNS[one.kind]}" for one in operators) or "nothing"


def _listed(texts: Sequence[str]) -> str:
    return ", ".join(texts) or "nothing"


def _readable(text: str) -> str:
    """Without the hashes that tell windows apart."""
    return _HASH.sub("", text)
