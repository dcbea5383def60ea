"""What the state of a checkpoint means: per operator its ordered keys, functions and stored columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Self

StateKind = Literal["aggregate", "session", "join", "deduplicate", "deduplicate_within_watermark", "limit", "process",
                    "pandas_state"]  # fmt: skip


@dataclass(frozen=True)
class StateOperator:
    """An operator that keeps state. Its expressions are traced to the columns of sources."""

    kind: StateKind
    keys: tuple[str, ...] = ()
    """What rows are grouped, joined or compared by, in the order in which state is laid out."""
    functions: tuple[str, ...] = ()
    """The functions of an aggregation, in the order in which their buffers are laid out."""
    stored: tuple[tuple[str, ...], ...] = ()
    """The columns that are kept: of each side of a join, in order. Of a processor, `name=…` of what it reads."""
    detail: str = ""
    """What else the state depends on: the kind of a join, the number of a limit, a processor's time."""
    condition: str = ""
    """What else two rows of a join must fulfil."""
    rows: str = ""
    """What multiplies the rows that it reads: explosions, unions, joins with static tables."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            data["kind"],
            tuple(data["keys"]),
            tuple(data["functions"]),
            tuple(tuple(side) for side in data["stored"]),
            data["detail"],
            data["condition"],
            data.get("rows", ""),
        )


@dataclass(frozen=True)
class WatermarkOn:
    """A watermark: the column, traced, and its delay as Spark shows it."""

    column: str
    delay: str


@dataclass(frozen=True)
class OutputColumn:
    """A column of what the query gives to its sinks."""

    name: str
    type: str
    expression: str


@dataclass(frozen=True)
class Signature:
    """What a query keeps and gives, independent of how its text is written."""

    spark: str
    """The version of Spark that planned it. Another one may plan the same text in another way."""
    sources: tuple[str, ...] = ()
    """The streams in the order in which Spark numbers them; one that is read twice is there twice."""
    operators: tuple[StateOperator, ...] = ()
    """Those with state, inputs before what reads them."""
    watermarks: tuple[WatermarkOn, ...] = ()
    filters: tuple[str, ...] = ()
    """The conditions on rows, in no order."""
    output: tuple[OutputColumn, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    """By column of a source, such as `orders.amount`, its type."""
    code: Mapping[str, str] = field(default_factory=dict)
    """By function, class or module of the user, the hash of its code with all that it uses of the project."""
    zone: str = ""
    """The session time zone, by which text becomes a timestamp and a timestamp a day. Old manifests have none."""

    @property
    def is_stateful(self) -> bool:
        return bool(self.operators)

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same with other names of sources: by old name, the new one."""
        if not names:
            return self
        pattern = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, names))})\.")
        data = _replaced(asdict(self), lambda text: pattern.sub(lambda found: f"{names[found[1]]}.", text))
        data |= {"sources": [names.get(one, one) for one in self.sources], "code": self.code, "spark": self.spark}
        data |= {"zone": self.zone}
        return self.from_json(data)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cls(
            data["spark"],
            tuple(data["sources"]),
            tuple(StateOperator.from_json(one) for one in data["operators"]),
            tuple(WatermarkOn(**one) for one in data["watermarks"]),
            tuple(data["filters"]),
            tuple(OutputColumn(**one) for one in data["output"]),
            dict(data["types"]),
            dict(data["code"]),
            data.get("zone", ""),
        )


def _replaced(value: Any, replace_in: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return replace_in(value)
    if isinstance(value, Mapping):
        return {replace_in(key): _replaced(one, replace_in) for key, one in value.items()}
    return [_replaced(one, replace_in) for one in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class EndPlace:
    """Where a source reads or a sink writes. What references resolve to is kept as a hash: it may be a secret."""

    name: str
    type: str
    shown: str
    """As the user wrote it."""
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By key, such as `path` or `topics`, the hashes of its values."""
    static: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    """What else matters to a resume, such as where a new query starts to read."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        parts = {key: tuple(values) for key, values in data["parts"].items()}
        return cls(data["name"], data["type"], data["shown"], parts, data["static"], dict(data["settings"]))


@dataclass(frozen=True)
class TextOperator:
    """An operator with state, as the text of a query shows it."""

    kind: str
    keys: tuple[str, ...]
    functions: tuple[str, ...]
    below: str
    """The hash of what it reads."""


@dataclass(frozen=True)
class TextShape:
    """What the text of a query tells of its state, without Spark."""

    sources: tuple[str, ...]
    operators: tuple[TextOperator, ...]
    whole: str
    """The hash of the whole text, normalised."""
    unfiltered: str
    """The same without filters."""

    def hidden(self, hide: Callable[[str], str]) -> Self:
        """The same without secrets in its texts."""
        operators = tuple(
            replace(one, keys=tuple(map(hide, one.keys)), functions=tuple(map(hide, one.functions)))
            for one in self.operators
        )
        return replace(self, operators=operators)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        operators = tuple(
            TextOperator(one["kind"], tuple(one["keys"]), tuple(one["functions"]), one["below"])
            for one in data["operators"]
        )
        return cls(tuple(data["sources"]), operators, data["whole"], data["unfiltered"])


@dataclass(frozen=True)
class Recorded:
    """What a checkpoint's manifest has recorded of its query at the last start."""

    definition: Mapping[str, Any] = field(default_factory=dict)
    """The sources, steps and sinks as they were written."""
    signature: Signature | None = None
    """None in a manifest of format 1."""
    sources: tuple[EndPlace, ...] = ()
    sinks: tuple[EndPlace, ...] = ()
    shape: TextShape | None = None
    """None where the text does not tell it."""
