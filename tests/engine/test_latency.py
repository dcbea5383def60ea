"""What a latency word means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.engine.latency import BIRTH_SETTINGS, profile
from penstock.pipeline.model import Pipeline

Read = Callable[[str], Pipeline]

TEXT = """\
pipeline: p
latency: LATENCY
sources: {a: {type: rate}}
sinks: {o: {of: a, type: console}}
queries: {a: SETTINGS}
"""


def profile_of(read: Read, latency: str, settings: str = "{}", cores: int = 4) -> tuple[str, dict[str, str]]:
    (query,) = read(TEXT.replace("LATENCY", latency).replace("SETTINGS", settings)).queries
    found = profile(query, cores)
    return str(found.trigger), found.settings


@pytest.mark.covers("trigger.default", "trigger.interval")
@pytest.mark.parametrize(
    ("latency", "trigger"),
    [("realtime", "default"), ("low", "default"), ("balanced", "5 seconds"), ("throughput", "1 minute")],
)
def test_a_word_sets_the_trigger(read: Read, latency: str, trigger: str) -> None:
    assert profile_of(read, latency)[0] == trigger


def test_a_query_may_have_another_word_or_trigger_than_its_pipeline(read: Read) -> None:
    assert profile_of(read, "balanced", "{latency: throughput}")[0] == "1 minute"
    assert profile_of(read, "balanced", "{latency: throughput, trigger: available_now}")[0] == "available_now"


def test_shuffle_partitions_follow_the_cores_unless_they_are_set(read: Read) -> None:
    assert profile_of(read, "low", cores=3)[1]["spark.sql.shuffle.partitions"] == "3"
    set_by_user = profile_of(read, "low", "{spark: {spark.sql.shuffle.partitions: 8, spark.sql.x: y}}")[1]
    assert (set_by_user["spark.sql.shuffle.partitions"], set_by_user["spark.sql.x"]) == ("8", "y")


def test_every_setting_that_is_fixed_at_birth_has_a_value(read: Read) -> None:
    settings = profile_of(read, "low")[1]
    assert [key for key in BIRTH_SETTINGS if key not in settings] == []
    assert all(key.startswith("spark.sql.") for key in settings)
