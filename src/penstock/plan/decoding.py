"""How sources read their records against how they did: is a column of the same name still the same? Pure.

A signature replaces each source by the columns that it hands on. What happens before that is judged here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.facts.signature import EndPlace
from penstock.plan.ends import At, renamed_ends
from penstock.plan.verdict import PlanFinding, Verdict

SETTINGS = ("format", "key_format", "expect", "on_bad_record", "watermark")
"""The keys of a source that decide which rows it hands on, and what their columns mean."""
_BY_POSITION = frozenset({"csv"})
"""Formats whose values get their names by their position in the schema."""
_WITHOUT_MEANING = frozenset(
    {"type", "schema", "schema_file", "registry", "compression", "input_buffer_size", "max_columns",
     "max_chars_per_column", "column_pruning", "use_unsafe_row", "sampling_ratio", "merge_schema", "infer_schema",
     "enforce_schema", "column_name_of_corrupt_record", "mode"}
)  # fmt: skip
"""Options that leave the value of a column as it is, wherever both texts read one; types have findings of their own."""
_COLUMN = re.compile(r"\s*(`[^`]+`|\w+)")


def decoding_findings(
    before: Sequence[EndPlace], now: Sequence[EndPlace], query: str, reset: str, at: At, *, stateful: bool
) -> Iterator[PlanFinding]:
    """What the state of a query, or its rows from here on, get in another way."""
    old, new = ({one.name: one for one in ends if not one.static} for ends in (before, now))
    renamed = renamed_ends(old, new)
    for name, is_ in new.items():
        was = old.get(renamed.get(name, name))
        if was is not None and was.type == is_.type:
            yield from _decoded(was, is_, query, reset, at, stateful=stateful)
            yield from _let_through(was, is_, query, at, stateful=stateful)


def _decoded(was: EndPlace, is_: EndPlace, query: str, reset: str, at: At, *, stateful: bool) -> Iterator[PlanFinding]:
    verdict: Verdict = "restart" if stateful else "resume"
    for key in ("format", "key_format"):
        before, now = _format(was, key), _format(is_, key)
        if before.get("type") != now.get("type"):
            message = f"`{is_.name}` reads {now.get('type')} from here on, and has read {before.get('type')}"
            yield PlanFinding("PLAN031", is_.name, message, "nothing, if this is meant", "warn", at(is_.name, key),
                              str(before.get("type")), str(now.get("type")))  # fmt: skip
            continue
        changed = [f"`{one}`" for one in {**before, **now} if before.get(one) != now.get(one) and _has_meaning(one)]
        if before.get("type") in _BY_POSITION and _moved(before.get("schema"), now.get("schema")):
            changed.append("the order of the columns in `schema`")
        if not changed:
            continue
        shown = [_shown(one, other) for one, other in ((before, now), (now, before))]
        held = f", and the state of `{query}` holds what the old way gave" if stateful else ""
        message = f"`{is_.name}` decodes its records in another way ({', '.join(changed)}){held}"
        fix = (
            f"undo the edit; or run `{reset}`; or, if the columns mean the same, set `accept: [PLAN031]` on the query"
            if stateful
            else "nothing, if this is meant"
        )
        yield PlanFinding("PLAN031", is_.name, message, fix, verdict, at(is_.name, key), *shown)


def _let_through(was: EndPlace, is_: EndPlace, query: str, at: At, *, stateful: bool) -> Iterator[PlanFinding]:
    """Expectations, bad records and the limit for the future are filters before anything else."""
    for key, read in (("expect", _expectations), ("on_bad_record", _as_it_is), ("watermark", _max_future)):
        before, now = read(_setting(was, key)), read(_setting(is_, key))
        if before == now:
            continue
        held = f" The state of `{query}` holds what was let through before." if stateful else ""
        message = f"`{is_.name}` lets other rows through from here on: `{key}` has changed.{held}"
        verdict: Verdict = "warn" if stateful else "resume"
        yield PlanFinding("PLAN008", is_.name, message, "nothing, if this is meant", verdict, at(is_.name, key),
                          _text(before), _text(now))  # fmt: skip


def _setting(end: EndPlace, key: str) -> Any:
    return json.loads(end.settings.get(key, "null"))


def _format(end: EndPlace, key: str) -> dict[str, Any]:
    given = _setting(end, key)
    if not isinstance(given, Mapping):
        return {"type": given} if given else {}
    options = given.get("spark_options") or {}
    rest = {name: value for name, value in given.items() if name != "spark_options"}
    return {name: value for name, value in (rest | options).items() if value is not None}


def _has_meaning(option: str) -> bool:
    """`allow_…` options only let more records be read."""
    return option not in _WITHOUT_MEANING and not option.startswith("allow_")


def _moved(before: Any, now: Any) -> bool:
    """Has a position another name? Columns that are added at the end move nothing."""
    old, new = _names(before), _names(now)
    return any(one != other for one, other in zip(old, new, strict=False))


def _names(schema: Any) -> list[str]:
    """The names of the columns of a DDL, in order."""
    depth, start, parts, text = 0, 0, [], str(schema or "")
    for place, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == "," and depth == 0:
            parts.append(text[start:place])
            start = place + 1
    found = (_COLUMN.match(part) for part in [*parts, text[start:]])
    return [one[1].strip("`").lower() for one in found if one]


def _shown(options: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    different = {key: value for key, value in options.items() if other.get(key) != value}
    return ", ".join(f"{key}: {value}" for key, value in different.items())


def _expectations(given: Any) -> dict[str, Any]:
    """Those that keep a row out; the others only count."""
    return {
        name: {"that": one.get("that"), "otherwise": one.get("otherwise")}
        for name, one in (given or {}).items()
        if one.get("otherwise") != "warn"
    }


def _max_future(given: Any) -> Any:
    return (given or {}).get("max_future")


def _as_it_is(given: Any) -> Any:
    return given


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True) if value else "nothing"
