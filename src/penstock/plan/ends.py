"""Sources and sinks against those of a checkpoint: are they the same, at the same places, in the same order? Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from penstock.facts.signature import EndPlace
from penstock.notation.paths import braces_expanded
from penstock.pipeline.model import Query
from penstock.plan.verdict import PlanFinding, Verdict
from penstock.problems import Where

At = Callable[[str, str], Where | None]
"""The place of a key of a source or sink in the user's text."""
_NO_TABLE = frozenset({"kafka", "http", "console", "memory", "python"})
"""Sinks that hold no rows of their own: what went there is gone, and a new place gets rows from here on."""
_FOLDERS = frozenset({"files", "delta"})
"""Kinds that write below a path."""
_STARTS = ("starting", "starting_version", "starting_timestamp", "from_timestamp", "from_snapshot")


def source_findings(
    before: Sequence[EndPlace],
    order_before: Sequence[str],
    now: Sequence[EndPlace],
    order_now: Sequence[str],
    query: str,
    reset: str,
    at: At,
) -> Iterator[PlanFinding]:
    """`order_…` are the streams as Spark numbers them."""
    old, new = {one.name: one for one in before}, {one.name: one for one in now}
    renamed = renamed_ends(old, new)
    if tuple(order_before) != tuple(renamed.get(name, name) for name in order_now):
        yield _order(order_before, order_now, query, reset, at)
        return
    for name, place in new.items():
        kept = old.get(renamed.get(name, name))
        if kept is None:
            continue  # a static source, read as it is now
        yield from _source(kept, place, query, reset, at)


def renamed_ends(old: Mapping[str, EndPlace], new: Mapping[str, EndPlace]) -> dict[str, str]:
    """New names of sources that read the same place as before: by new name, the old one."""
    gone = {name: one for name, one in old.items() if name not in new}
    found: dict[str, str] = {}
    for name, place in new.items():
        if name in old:
            continue
        same = [other for other, one in gone.items() if (one.type, one.parts) == (place.type, place.parts)]
        if len(same) == 1:
            found[name] = same[0]
            gone.pop(same[0])
    return found


def _order(before: Sequence[str], now: Sequence[str], query: str, reset: str, at: At) -> PlanFinding:
    old, new = ", ".join(f"`{one}`" for one in before), ", ".join(f"`{one}`" for one in now)
    if sorted(before) == sorted(now):
        what = "reads its streams in another order"
    elif len(now) > len(before):
        what = "reads more streams"
    elif len(now) < len(before):
        what = "reads fewer streams"
    else:
        what = "reads other streams"
    message = (
        f"`{query}` {what} than its checkpoint knows. Spark finds the position in a stream by its number in the query,"
        " so one stream would resume at the position of another"
    )
    fix = f"put the sources back in the order {old}, or run `{reset}`"
    changed = next((name for name in now if name not in before), now[0] if now else query)
    return PlanFinding("PLAN010", query, message, fix, "restart", at(changed, ""), old, new)


def _source(was: EndPlace, is_: EndPlace, query: str, reset: str, at: At) -> Iterator[PlanFinding]:
    name = is_.name
    undo = f"undo the edit, or run `{reset}`"
    if was.type != is_.type or was.static != is_.static:
        kind = f"{'a static' if is_.static else 'a'} `{is_.type}` source"
        message = f"`{name}` is {kind} now. The checkpoint of `{query}` holds a position in a `{was.type}` source"
        verdict: Verdict = "warn" if was.static and is_.static else "restart"
        yield PlanFinding("PLAN011", name, message, undo, verdict, at(name, "type"), was.type, is_.type)
        return
    if was.parts != is_.parts:
        yield _other_place(was, is_, query, undo, at)
    for key in ("change_feed", "rows_per_second"):
        if was.settings.get(key) != is_.settings.get(key) and not is_.static:
            message = f"`{key}` of `{name}` has changed: the position in the checkpoint of `{query}` counts other rows"
            yield PlanFinding("PLAN012", name, message, undo, "restart", at(name, key), was.settings.get(key, ""),
                              is_.settings.get(key, ""))  # fmt: skip
    for key in _STARTS:
        if was.settings.get(key) != is_.settings.get(key) and not is_.static:
            message = f"`{key}` of `{name}` has no effect: `{query}` resumes where its checkpoint stopped"
            fix = f"leave it, or run `{reset}` to start there"
            yield PlanFinding("PLAN025", name, message, fix, "warn", at(name, key), was.settings.get(key, ""),
                          is_.settings.get(key, ""))  # fmt: skip


def _other_place(was: EndPlace, is_: EndPlace, query: str, undo: str, at: At) -> PlanFinding:
    name, place = is_.name, at(is_.name, _first_difference(was, is_))
    if is_.static:
        message = f"`{name}` reads another place: its rows count from here on"
        return PlanFinding("PLAN028", name, message, "nothing, if this is meant", "warn", place, was.shown, is_.shown)
    others = {key: value for key, value in is_.parts.items() if key not in ("topics", "servers")}
    others_before = {key: value for key, value in was.parts.items() if key not in ("topics", "servers")}
    topics, kept = set(is_.parts.get("topics", ())), set(was.parts.get("topics", ()))
    if is_.type == "kafka" and others == others_before and topics >= kept:
        what = "reads more topics" if topics > kept else "reads from other brokers"
        message = f"`{name}` {what}; the positions in the topics that it had are kept"
        fix = "nothing, if these are the same topics" if topics == kept else "nothing, if this is meant"
        return PlanFinding("PLAN013", name, message, fix, "warn", place, was.shown, is_.shown)
    if is_.type == "files" and was.shown in braces_expanded(is_.shown):
        message = f"`{name}` reads more folders; the files that it has read in `{was.shown}` are not read again"
        return PlanFinding("PLAN013", name, message, "nothing, if this is meant", "warn", place, was.shown, is_.shown)
    moved = was.shown == is_.shown and "path" in is_.parts
    if moved:
        message = (
            f"`{name}` reads `{is_.shown}`, which is another folder than before: the project was moved or copied, or a"
            f" reference resolves to another value. The checkpoint of `{query}` lists files by their whole paths, so"
            " all files would be read again"
        )
        return PlanFinding("PLAN026", name, message, undo, "restart", place, was.shown, is_.shown)
    message = f"`{name}` reads another place, and the checkpoint of `{query}` holds a position in the old one"
    return PlanFinding("PLAN012", name, message, undo, "restart", place, was.shown, is_.shown)


def sink_findings(
    before: Sequence[EndPlace], now: Sequence[EndPlace], query: str, reset: str, last_batch: int | None, at: At
) -> Iterator[PlanFinding]:
    old, new = {one.name: one for one in before}, {one.name: one for one in now}
    renamed = renamed_ends(old, new)
    rest = [one for one in before if one.name not in new and one.name not in renamed.values()]
    for name, place in new.items():
        kept = old.get(name) or old.get(renamed.get(name, ""))
        if kept is None and len(new) == len(old) == 1:
            kept, rest = before[0], []  # the only sink, under another name
        if kept is not None:
            yield from _sink(kept, place, query, reset, at)
        elif last_batch is not None:
            yield _added(place, query, reset, last_batch, at)
    for place in rest:
        message = f"`{query}` does not write to `{place.name}` any more; what is there stays"
        yield PlanFinding(
            "PLAN018", place.name, message, "nothing, if this is meant", "resume", at(query, ""), place.shown
        )


def _sink(was: EndPlace, is_: EndPlace, query: str, reset: str, at: At) -> Iterator[PlanFinding]:
    undo = f"undo the edit, or run `{reset}`"
    key = _first_difference(was, is_)
    place = at(is_.name, key)
    same_path = "path" in is_.parts and was.parts.get("path") == is_.parts["path"]
    if was.type != is_.type and same_path:
        message = (
            f"`{is_.name}` writes a `{is_.type}` table into the folder where it has written `{was.type}`. Readers would"
            " not find the old rows"
        )
        fix = f"give it a `path` of its own and run `{reset}`, or set `type: {was.type}` again"
        yield PlanFinding("PLAN016", is_.name, message, fix, "refuse", at(is_.name, "type"), was.type, is_.type)
    elif was.type != is_.type or was.parts != is_.parts:
        yield _elsewhere(was, is_, query, undo, place)
    else:
        for setting in ("writes", "write", "keys", "partition_by", "format"):
            if was.settings.get(setting) != is_.settings.get(setting):
                message = (
                    f"`{setting}` of `{is_.name}` is another one from here on; what is written already stays as it is"
                )
                verdict: Verdict = "warn" if is_.type not in _NO_TABLE else "resume"
                if is_.type == "files" and (setting == "partition_by" or _kind(was) != _kind(is_)):
                    verdict = "restart"
                    message = (
                        f"`{setting}` of `{is_.name}` has changed: no reader gets files of both kinds in one folder"
                    )
                shown = [_kind(one) if setting == "format" else one.settings.get(setting, "") for one in (was, is_)]
                yield PlanFinding("PLAN029", is_.name, message, undo, verdict, at(is_.name, setting), *shown)


def _kind(place: EndPlace) -> str:
    """The type of the format in which a sink writes."""
    given = json.loads(place.settings.get("format", "null"))
    return str(given.get("type") if isinstance(given, Mapping) else given)


def _elsewhere(was: EndPlace, is_: EndPlace, query: str, undo: str, place: Where | None) -> PlanFinding:
    old, new = f"{was.type} {was.shown}".strip(), f"{is_.type} {is_.shown}".strip()
    if is_.type in _NO_TABLE:
        message = f"`{is_.name}` writes to another place: it gets the rows from here on"
        return PlanFinding("PLAN015", is_.name, message, "nothing, if this is meant", "warn", place, old, new)
    message = (
        f"`{is_.name}` writes to another place. It would get the rows from here on only: those that `{query}` has"
        " written before are not there"
    )
    fix = f"{undo}; or, if it should have new rows only, add `accept: [PLAN014]` to the query"
    return PlanFinding("PLAN014", is_.name, message, fix, "restart", place, old, new)


def _added(place: EndPlace, query: str, reset: str, last_batch: int, at: At) -> PlanFinding:
    message = f"`{place.name}` is a new sink of `{query}`: it gets the rows from batch {last_batch + 1} on"
    if place.type in _NO_TABLE:
        return PlanFinding("PLAN017", place.name, message, "nothing, if this is meant", "warn", at(place.name, ""))
    fix = f"run `{reset}` to write all rows; or, if it should have new rows only, add `accept: [PLAN017]` to the query"
    return PlanFinding("PLAN017", place.name, message, fix, "restart", at(place.name, ""), "", place.shown)


def _first_difference(was: EndPlace, is_: EndPlace) -> str:
    keys = {**is_.parts, **was.parts}
    return next((key for key in keys if was.parts.get(key) != is_.parts.get(key)), "")


def mode_findings(before: str, query: Query) -> Iterator[PlanFinding]:
    now = query.settings.mode
    if before and before != now:
        message = f"`{query.name}` writes in mode `{now}`, and wrote in mode `{before}`: it counts from here on"
        where = query.origin.at("mode")
        yield PlanFinding("PLAN019", query.name, message, "nothing, if this is meant", "warn", where, before, now)


def unknown_state(query: Query, reset: str) -> PlanFinding:
    """A stateful query was edited, and its checkpoint has no signature to compare it with."""
    message = (
        f"`{query.name}` was changed since an older Penstock wrote its checkpoint, and that one kept no record of what"
        " its state means"
    )
    fix = f"undo the edit; or run `{reset}`; or, if the state fits all the same, set `accept: [PLAN022]`"
    return PlanFinding("PLAN022", query.name, message, fix, "restart", query.origin.where)
