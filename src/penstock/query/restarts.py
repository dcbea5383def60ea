"""How often a query is restarted after a failure, and what happens when it gives up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.notation.durations import Duration, to_milliseconds
from penstock.notation.references import has_reference
from penstock.spec import Spec

OnFailure = Literal["stop_query", "stop_pipeline"]
ON_FAILURE = (
    "When a query gives up: `stop_pipeline`, the default, stops all queries of its pipeline after their current batch;"
    " `stop_query` lets them run. Other pipelines always run on."
)
RESTARTS = "How often a query is restarted after a failure that can pass by itself. Narrower settings win, key by key."


class Restarts(Spec):
    """How often a query is restarted. The delay doubles with each restart; the count clears after a quiet time."""

    most: int = Field(
        10, ge=0, description="The query gives up at the failure after this many restarts. 0: it never restarts."
    )
    first_delay: Duration = Field("1 second", description="The delay before the first restart.")
    longest_delay: Duration = Field("1 minute", description="The delay doubles up to this length.")
    quiet: Duration = Field("10 minutes", description="After this time without a failure the count starts at 0 again.")

    @model_validator(mode="after")
    def _delays_fit(self) -> Self:
        if has_reference(self.first_delay) or has_reference(self.longest_delay):
            return self  # judged once it is resolved
        if to_milliseconds(self.first_delay) > to_milliseconds(self.longest_delay):
            raise PydanticCustomError("restarts", "`first_delay` must not be longer than `longest_delay`")
        return self


@dataclass(frozen=True)
class Policy:
    """What applies to one query."""

    most: int = 10
    first_delay_seconds: float = 1.0
    longest_delay_seconds: float = 60.0
    quiet_seconds: float = 600.0
    on_failure: OnFailure = "stop_pipeline"
    max_bad_share: float | None = None


@dataclass(frozen=True)
class Level:
    """What a project, a pipeline or a query says."""

    restarts: Restarts | None = None
    on_failure: OnFailure | None = None


def merged_policy(*levels: Level, max_bad_share: float | None = None) -> Policy:
    """The policy of a query from all levels, the widest first. The narrowest wins, key by key."""
    given: dict[str, Any] = {}
    for level in levels:
        given |= level.restarts.given() if level.restarts else {}
    # Two levels may not fit together: a longer first delay of the narrower level then lifts the longest one.
    chosen = Restarts.model_construct(**given)
    first, longest, quiet = (
        to_milliseconds(one) / 1_000 for one in (chosen.first_delay, chosen.longest_delay, chosen.quiet)
    )
    on_failure = next((one.on_failure for one in reversed(levels) if one.on_failure), Policy.on_failure)
    return Policy(chosen.most, first, max(first, longest), quiet, on_failure, max_bad_share)
