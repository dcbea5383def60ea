"""Where a read of Kafka topics begins and ends: a word, offsets, or a moment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from penstock.connections.kafka_offsets import Offsets, to_json
from penstock.problems import Fault
from penstock.spec import Spec

Edge = Literal["starting", "ending"]
Partitions = Mapping[str, frozenset[int]]
"""topic → its partitions"""

_EARLIEST, _LATEST = -2, -1
_LONG_AGO, _NEVER = 0, 253_402_300_799_000


def to_moment(value: int | str) -> int:
    """Milliseconds since 1970 of an ISO text or of a number that is that already; a text without a zone is UTC."""
    if isinstance(value, int) or value.isdigit():
        return int(value)
    moment = datetime.fromisoformat(value)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


def _checked(value: Any) -> Any:
    try:
        to_moment(value)
    except (ValueError, TypeError, AttributeError, OverflowError):
        # Said once: a union would say it for each of its members.
        raise PydanticCustomError(
            "moment", "should be a time such as `2026-01-31T12:00:00Z`, or milliseconds since 1970"
        ) from None
    return value


Moment = Annotated[int | str, BeforeValidator(_checked)]
Moments = Annotated[
    Annotated[Moment, Tag("moment")] | Annotated[dict[int, Moment], Tag("partitions")],
    Discriminator(lambda value: "partitions" if isinstance(value, dict) else "moment"),
]


class AtTimestamp(Spec):
    """The first record that is as late as a moment, in each partition."""

    timestamp: Moment | None = Field(
        None, description="For all partitions: such as `2026-01-31T12:00:00Z` (UTC without a zone), or milliseconds."
    )
    timestamps: dict[str, Moments] = Field(
        default_factory=dict, description="Or a moment for each topic, `{topic: …}` or `{topic: {partition: …}}`."
    )
    if_none: Literal["fail", "latest"] = Field(
        "fail", description="Where no record is as late: `fail`, or begin at the end. An ending is the end then."
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.timestamp is None) is not bool(self.timestamps):
            raise PydanticCustomError("moment", "give one of `timestamp` and `timestamps`")
        return self


def _position(*words: str) -> Any:
    def kind(value: Any) -> str | None:
        if isinstance(value, AtTimestamp) or (isinstance(value, dict) and {"timestamp", "timestamps"} & value.keys()):
            return "timestamp"
        if isinstance(value, dict):
            return "offsets"
        return "word" if value in words else None

    spelled = ", ".join(f"`{word}`" for word in words)
    return Discriminator(
        kind,
        custom_error_type="position",
        custom_error_message=f"should be {spelled}, `{{topic: {{partition: offset}}}}` or `{{timestamp: …}}`",
    )


Offset = Annotated[int, Field(ge=-2)]
_Offsets = dict[str, dict[int, Offset]]
Starting = Annotated[
    Annotated[Literal["earliest", "latest"], Tag("word")]
    | Annotated[AtTimestamp, Tag("timestamp")]
    | Annotated[_Offsets, Tag("offsets")],
    _position("earliest", "latest"),
]
Ending = Annotated[
    Annotated[Literal["latest"], Tag("word")]
    | Annotated[AtTimestamp, Tag("timestamp")]
    | Annotated[_Offsets, Tag("offsets")],
    _position("latest"),
]


def names_partitions(position: Any) -> bool:
    """Must the partitions of the topics be known to say where it is?"""
    if isinstance(position, AtTimestamp):
        return position.timestamp is None
    return position is not None and not isinstance(position, str)


def position_options(edge: Edge, position: Any, partitions: Callable[[], Partitions]) -> dict[str, str]:
    """A position as Spark's options. A partition that is not named is read from its beginning, or to its end.

    `partitions` is asked only where Spark wants every partition named. Raises Fault KAFKA003 for one that is not there.
    """
    if position is None:
        return {}
    if isinstance(position, str):
        return {f"{edge}Offsets": position}
    if not isinstance(position, AtTimestamp):
        rest = _EARLIEST if edge == "starting" else _LATEST
        return {f"{edge}Offsets": to_json(_everywhere(position, partitions(), rest, edge))}
    to_the_end = edge == "starting" and position.if_none == "latest"
    strategy = {"startingOffsetsByTimestampStrategy": "latest"} if to_the_end else {}
    if position.timestamp is not None:
        return {f"{edge}Timestamp": str(to_moment(position.timestamp))} | strategy
    found = partitions()
    moments: Offsets = {}
    for topic, moment in position.timestamps.items():
        if isinstance(moment, dict):
            moments[topic] = {partition: to_moment(each) for partition, each in moment.items()}
        else:
            moments[topic] = dict.fromkeys(found.get(topic, frozenset({0})), to_moment(moment))
    rest = _LONG_AGO if edge == "starting" else _NEVER
    return {f"{edge}OffsetsByTimestamp": to_json(_everywhere(moments, found, rest, edge))} | strategy


def _everywhere(named: Offsets, partitions: Partitions, rest: int, edge: Edge) -> Offsets:
    for topic, each in named.items():
        for partition in each:
            if partition not in partitions.get(topic, frozenset()):
                raise Fault("KAFKA003", f"`{edge}` names partition {partition} of `{topic}`, which is not read",
                            "name partitions that are there, of topics that this source reads", (edge,))  # fmt: skip
    return {
        topic: {partition: named.get(topic, {}).get(partition, rest) for partition in sorted(each)}
        for topic, each in partitions.items()
    }
