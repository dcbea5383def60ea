"""The state of a processor in plain memory, with the faces that PySpark's handle and state variables have."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["value", "list", "map"]
Key = tuple[Any, ...]
Values = tuple[Any, ...]


class WrongUse(Exception):
    """The processor does what Spark refuses."""


@dataclass
class Clock:
    """The times that a batch goes by, in milliseconds, and the key whose turn it is."""

    time: str
    processing_ms: int = 0
    watermark_ms: int = 0
    key: Key | None = None

    @property
    def expires_ms(self) -> int:
        """The time that timers are compared with."""
        return self.watermark_ms if self.time == "event_time" else self.processing_ms

    @property
    def current_key(self) -> Key:
        if self.key is None:
            raise WrongUse("state belongs to a key, and in `init` and `close` there is none")
        return self.key


@dataclass
class Kept:
    """A value with the time at which it expires."""

    values: Values
    expires_ms: int | None


@dataclass
class Variable:
    """One state variable of all keys."""

    name: str
    kind: Kind
    clock: Clock
    columns: int | None
    ttl_ms: int | None
    kept: dict[Key, list[Kept]] = field(default_factory=dict)
    """Of a value at most one, of a list in its order."""
    mapped: dict[Key, dict[Values, Kept]] = field(default_factory=dict)
    """Of a map, by its own key."""

    def keep(self, values: Any) -> Kept:
        if values is None:
            raise WrongUse(f"state `{self.name}` cannot hold None: give a tuple, or clear it")
        given = tuple(copy.deepcopy(tuple(values)))
        if self.columns is not None and len(given) < self.columns:
            raise WrongUse(f"state `{self.name}` has {self.columns} columns, and got {len(given)}: {given!r}")
        expires = None if self.ttl_ms is None else self.clock.processing_ms + self.ttl_ms
        return Kept(given[: self.columns], expires)

    def alive(self, kept: Iterable[Kept]) -> list[Values]:
        return [copy.deepcopy(one.values) for one in kept if not self.is_expired(one)]

    def is_expired(self, kept: Kept) -> bool:
        return kept.expires_ms is not None and kept.expires_ms <= self.clock.processing_ms

    def expire(self) -> None:
        """Removes what has expired, of all keys."""
        for key, items in list(self.kept.items()):
            self.kept[key] = [one for one in items if not self.is_expired(one)]
            if not self.kept[key]:
                del self.kept[key]
        for key, entries in list(self.mapped.items()):
            self.mapped[key] = {name: one for name, one in entries.items() if not self.is_expired(one)}
            if not self.mapped[key]:
                del self.mapped[key]

    def of(self, key: Key) -> Any:
        """What a test sees of a key: a tuple or None, a list of tuples, or a mapping of tuples."""
        if self.kind == "map":
            return {name: one.values for name, one in self.mapped.get(key, {}).items() if not self.is_expired(one)}
        found = self.alive(self.kept.get(key, ()))
        return found if self.kind == "list" else next(iter(found), None)

    def forget(self) -> None:
        self.kept.clear()
        self.mapped.clear()


class ValueState:
    """One value of the key whose turn it is."""

    def __init__(self, variable: Variable) -> None:
        self._of = variable

    def exists(self) -> bool:
        return self.get() is not None

    def get(self) -> Values | None:
        return next(iter(self._of.alive(self._of.kept.get(self._of.clock.current_key, ()))), None)

    def update(self, newValue: Values) -> None:  # noqa: N803 - PySpark's own name
        self._of.kept[self._of.clock.current_key] = [self._of.keep(newValue)]

    def clear(self) -> None:
        self._of.kept.pop(self._of.clock.current_key, None)


class ListState:
    """A list of the key whose turn it is."""

    def __init__(self, variable: Variable) -> None:
        self._of = variable

    def exists(self) -> bool:
        return any(True for _ in self.get())

    def get(self) -> Iterator[Values]:
        return iter(self._of.alive(self._of.kept.get(self._of.clock.current_key, ())))

    def put(self, newState: list[Values]) -> None:  # noqa: N803
        self._of.kept[self._of.clock.current_key] = self._kept(newState)

    def appendValue(self, newState: Values) -> None:  # noqa: N802, N803
        self.appendList([newState])

    def appendList(self, newState: list[Values]) -> None:  # noqa: N802, N803
        self._of.kept.setdefault(self._of.clock.current_key, []).extend(self._kept(newState))

    def clear(self) -> None:
        self._of.kept.pop(self._of.clock.current_key, None)

    def _kept(self, values: list[Values]) -> list[Kept]:
        if not values:
            raise WrongUse(f"state `{self._of.name}` cannot be made an empty list: clear it")
        return [self._of.keep(one) for one in values]


class MapState:
    """A map of the key whose turn it is."""

    def __init__(self, variable: Variable) -> None:
        self._of = variable

    def exists(self) -> bool:
        return bool(self._alive())

    def getValue(self, key: Values) -> Values | None:  # noqa: N802
        return self._alive().get(tuple(key))

    def containsKey(self, key: Values) -> bool:  # noqa: N802
        return tuple(key) in self._alive()

    def updateValue(self, key: Values, value: Values) -> None:  # noqa: N802
        self._of.mapped.setdefault(self._of.clock.current_key, {})[tuple(key)] = self._of.keep(value)

    def iterator(self) -> Iterator[tuple[Values, Values]]:
        return iter(list(self._alive().items()))

    def keys(self) -> Iterator[Values]:
        return iter(list(self._alive()))

    def values(self) -> Iterator[Values]:
        return iter(list(self._alive().values()))

    def removeKey(self, key: Values) -> None:  # noqa: N802
        self._of.mapped.get(self._of.clock.current_key, {}).pop(tuple(key), None)

    def clear(self) -> None:
        self._of.mapped.pop(self._of.clock.current_key, None)

    def _alive(self) -> dict[Values, Values]:
        entries: Mapping[Values, Kept] = self._of.mapped.get(self._of.clock.current_key, {})
        return {name: copy.deepcopy(one.values) for name, one in entries.items() if not self._of.is_expired(one)}


class StateHandle:
    """What `init` gets: state variables and timers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.variables: dict[str, Variable] = {}
        self.timers: set[tuple[int, Key]] = set()
        self.initialising = False
        self.declared: set[str] = set()
        """What this `init` has named so far."""

    def getValueState(self, stateName: str, schema: Any, ttlDurationMs: int | None = None) -> ValueState:  # noqa: N802, N803
        return ValueState(self._variable(stateName, "value", schema, ttlDurationMs))

    def getListState(self, stateName: str, schema: Any, ttlDurationMs: int | None = None) -> ListState:  # noqa: N802, N803
        return ListState(self._variable(stateName, "list", schema, ttlDurationMs))

    def getMapState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        userKeySchema: Any,  # noqa: N803
        valueSchema: Any,  # noqa: N803
        ttlDurationMs: int | None = None,  # noqa: N803
    ) -> MapState:
        return MapState(self._variable(stateName, "map", valueSchema, ttlDurationMs))

    def registerTimer(self, expiryTimestampMs: int) -> None:  # noqa: N802, N803
        self._require_timers()
        self.timers.add((int(expiryTimestampMs), self._clock.current_key))

    def deleteTimer(self, expiryTimestampMs: int) -> None:  # noqa: N802, N803
        self._require_timers()
        self.timers.discard((int(expiryTimestampMs), self._clock.current_key))

    def listTimers(self) -> Iterator[int]:  # noqa: N802
        self._require_timers()
        return iter(sorted(expiry for expiry, key in self.timers if key == self._clock.current_key))

    def deleteIfExists(self, stateName: str) -> None:  # noqa: N802, N803
        self._require_init("deleteIfExists")
        if stateName in self.variables:
            self.variables[stateName].forget()

    def _variable(self, name: str, kind: Kind, schema: Any, ttl_ms: int | None) -> Variable:
        self._require_init(f"get{kind.capitalize()}State")
        if ttl_ms is not None and self._clock.time != "processing_time":
            raise WrongUse(f"state `{name}` has a TTL, which goes by `time: processing_time` only")
        if ttl_ms is not None and ttl_ms <= 0:
            raise WrongUse(f"state `{name}` has a TTL of {ttl_ms} ms: it must be more than 0")
        if name in self.declared:
            raise WrongUse(f"state `{name}` is declared twice")
        self.declared.add(name)
        found = self.variables.setdefault(name, Variable(name, kind, self._clock, width(schema), ttl_ms))
        found.columns, found.ttl_ms = width(schema), ttl_ms
        return found

    def _require_init(self, call: str) -> None:
        if not self.initialising:
            raise WrongUse(f"`{call}` can be called in `init` only")

    def _require_timers(self) -> None:
        if self._clock.time == "none":
            raise WrongUse("timers need `time: processing_time` or `time: event_time`")
        if self.initialising:
            raise WrongUse("timers belong to a key, and in `init` there is none")


def width(schema: Any) -> int | None:
    """How many columns a schema has: a StructType, or DDL, whose commas inside brackets are not counted."""
    if not isinstance(schema, str):
        return len(schema.fields)
    depth, columns = 0, 1
    for character in schema.strip().rstrip(","):
        depth += character in "<(["
        depth -= character in ">)]"
        columns += character == "," and depth == 0
    return columns
