"""What a latency word means."""

from __future__ import annotations

from collections.abc import Callable, Collection

import pytest

from penstock.connections.kafka_options import FETCH_WAIT, session_setting
from penstock.engine.latency import (
    BIRTH_SETTINGS,
    BUFFER_WAIT,
    FILE_MANAGER,
    HEARTBEAT,
    LARGE_REQUESTS,
    PARTITIONS,
    async_progress,
    process_settings,
    profile,
    wants_quick_files,
)
from penstock.pipeline.model import Pipeline
from penstock.pipeline.text_plan import plan_of_query
from penstock.query.async_progress import CACHE
from penstock.query.triggers import Trigger

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
    [("realtime", "real_time 5 minutes"), ("low", "default"), ("balanced", "5 seconds"), ("throughput", "1 minute")],
)
def test_a_word_sets_the_trigger(read: Read, latency: str, trigger: str) -> None:
    assert profile_of(read, latency)[0] == trigger


def test_a_query_may_have_another_word_or_trigger_than_its_pipeline(read: Read) -> None:
    assert profile_of(read, "balanced", "{latency: throughput}")[0] == "1 minute"
    assert profile_of(read, "balanced", "{latency: throughput, trigger: available_now}")[0] == "available_now"


def test_shuffle_partitions_follow_the_cores_unless_they_are_set(read: Read) -> None:
    words = {"realtime": "1", "low": "4", "balanced": "8", "throughput": "8"}
    assert {word: profile_of(read, word, cores=8)[1][PARTITIONS] for word in words} == words
    assert profile_of(read, "low", cores=1)[1][PARTITIONS] == "1"
    set_by_user = profile_of(read, "low", "{spark: {spark.sql.shuffle.partitions: 8, spark.sql.x: y}}")[1]
    assert (set_by_user["spark.sql.shuffle.partitions"], set_by_user["spark.sql.x"]) == ("8", "y")


def test_every_setting_that_is_fixed_at_birth_has_a_value(read: Read) -> None:
    settings = profile_of(read, "low")[1]
    assert [key for key in BIRTH_SETTINGS if key not in settings] == []
    assert all(key.startswith("spark.sql.") for key in settings)


def test_every_value_has_a_reason_and_the_users_own_wins(read: Read) -> None:
    settings = f"{{trigger: 3 seconds, spark: {{{PARTITIONS}: 7}}}}"
    (query,) = read(TEXT.replace("LATENCY", "low").replace("SETTINGS", settings)).queries
    found = profile(query, 4, {"spark.sql.ansi.enabled": "true"}, quick_files=True)
    assert found.trigger_why == "set by you"
    assert (found.choices[PARTITIONS].value, found.choices[PARTITIONS].why) == ("7", "set by you")
    assert found.choices["spark.sql.ansi.enabled"].why == "set by you for the project"
    assert FILE_MANAGER in found.choices
    assert all(choice.why for choice in found.choices.values())


FETCH_WAIT_SETTING = session_setting(FETCH_WAIT)


def test_a_fetch_is_cut_short_where_the_next_batch_would_wait_for_it(read: Read) -> None:
    def wait(latency: str, settings: str = "{}", *, choices: Collection[str] = (FETCH_WAIT_SETTING,)) -> str | None:
        (query,) = read(TEXT.replace("LATENCY", latency).replace("SETTINGS", settings)).queries
        return profile(query, 4, session_choices=choices).settings.get(FETCH_WAIT_SETTING)

    assert {word: wait(word) for word in ("low", "balanced", "throughput")} == {
        "low": "10", "balanced": "10", "throughput": "10",
    }  # fmt: skip
    assert wait("realtime") is None
    assert wait("low", "{trigger: {continuous: 1 second}}") is None
    assert wait("low", choices=()) is None
    assert wait("low", f"{{spark: {{{FETCH_WAIT_SETTING}: 50}}}}") == "50"


@pytest.mark.parametrize(
    ("latency", "settings", "once", "large"),
    [
        ("throughput", "{}", False, True),
        ("balanced", "{}", False, True),
        ("low", "{}", False, False),
        ("low", "{}", True, True),
        ("low", "{trigger: available_now}", False, True),
        ("realtime", "{}", False, False),
        ("realtime", "{}", True, True),
        ("throughput", "{trigger: {continuous: 1 second}}", False, False),
    ],
)
def test_requests_are_large_where_a_batch_is(read: Read, latency: str, settings: str, once: bool, large: bool) -> None:
    (query,) = read(TEXT.replace("LATENCY", latency).replace("SETTINGS", settings)).queries
    trigger = Trigger("available_now") if once else None
    found = profile(query, 4, session_choices=LARGE_REQUESTS, trigger=trigger)
    assert LARGE_REQUESTS.keys() & found.choices.keys() == (LARGE_REQUESTS.keys() if large else set())
    assert all(found.choices[name].why for name in found.choices)


def test_files_are_written_by_renaming_only_where_that_is_quick(read: Read) -> None:
    assert FILE_MANAGER not in profile_of(read, "low")[1]


@pytest.mark.parametrize(("latency", "quick"), [("realtime", True), ("low", True), ("balanced", False)])
def test_quick_files_are_for_quick_words(read: Read, latency: str, quick: bool) -> None:
    assert wants_quick_files([read(TEXT.replace("LATENCY", latency).replace("SETTINGS", "{}"))]) == quick


@pytest.mark.parametrize(
    ("latency", "spark", "asked"), [("realtime", "4.3", 1), ("realtime", "4.1", 0), ("low", "4.3", 0)]
)
def test_rows_do_not_wait_between_tasks_in_real_time(read: Read, latency: str, spark: str, asked: int) -> None:
    pipeline = read(TEXT.replace("LATENCY", latency).replace("SETTINGS", "{}"))
    assert process_settings([pipeline], spark).get(BUFFER_WAIT) == ("1" if asked else None)


@pytest.mark.parametrize("spark", ["4.1", "4.3"])
def test_what_lasts_for_minutes_tells_how_far_it_is_every_second(read: Read, spark: str) -> None:
    def heartbeat(latency: str) -> str | None:
        pipeline = read(TEXT.replace("LATENCY", latency).replace("SETTINGS", "{}"))
        return process_settings([pipeline], spark).get(HEARTBEAT)

    assert heartbeat("realtime") == "1s"
    assert heartbeat("low") is None


def test_in_real_time_rows_are_updates_unless_somebody_says_otherwise(read: Read) -> None:
    def mode_of(latency: str, settings: str) -> str:
        pipeline = read(TEXT.replace("LATENCY", latency).replace("SETTINGS", settings))
        assert pipeline.mode_of("a") == pipeline.queries[0].settings.mode
        return pipeline.mode_of("a")

    assert mode_of("realtime", "{}") == mode_of("low", "{latency: realtime}") == "update"
    assert mode_of("realtime", "{mode: append}") == mode_of("realtime", "{trigger: available_now}") == "append"
    assert mode_of("realtime", "{latency: low}") == "append"


KAFKA = "type: kafka, servers: localhost:9092"
COPIED = f"""\
pipeline: p
latency: LATENCY
sources: {{a: {{{KAFKA}, topics: [a], format: raw}}}}
steps: {{b: {{sql: SQL}}}}
sinks: {{o: {{of: b, SINK}}}}
queries: {{b: SETTINGS}}
"""


def interval(
    read: Read, settings: str = "{}", latency: str = "low", sql: str = "SELECT value FROM a", sink: str = ""
) -> str:
    words = {"LATENCY": latency, "SETTINGS": settings, "SQL": sql, "SINK": sink or f"{KAFKA}, topic: o"}
    text = COPIED
    for word, value in words.items():
        text = text.replace(word, value)
    pipeline = read(text)
    (query,) = pipeline.queries
    choice = async_progress(pipeline, query, plan_of_query(pipeline, query.name), query.settings.spark)
    return choice.value if choice else ""


def test_low_writes_progress_down_beside_the_work_where_nothing_stands_in_the_way(read: Read) -> None:
    assert interval(read) == "1 second"
    assert interval(read, "{trigger: 1 second}") == "1 second"
    assert interval(read, "{async_progress: false}") == "false"
    assert interval(read, "{async_progress: 5 seconds}", latency="balanced") == "5 seconds"
    assert interval(read, "{async_progress: true}", latency="balanced") == "1 second"
    assert interval(read, latency="balanced") == ""
    assert interval(read, "{trigger: available_now}") == ""
    assert interval(read, sql="SELECT DISTINCT value FROM a") == ""
    assert interval(read, sink="type: delta, path: o") == ""
    assert interval(read, f"{{spark: {{{CACHE}: false}}}}") == ""
    assert interval(read, f"{{spark: {{{CACHE}: true}}}}") == "1 second"
    assert interval(read, sink=f"{KAFKA}, topic: o, batch_sql: SELECT value FROM batch") == ""


def test_a_promise_says_what_a_crash_repeats(read: Read) -> None:
    pipeline = read(COPIED.replace("LATENCY", "low").replace("SQL", "SELECT value FROM a")
                    .replace("SINK", f"{KAFKA}, topic: o").replace("SETTINGS", "{}"))  # fmt: skip
    (query,) = pipeline.queries
    promised = {every: pipeline.guarantee_of(query, interval=every) for every in (None, "0 seconds", "1 second")}
    assert {one.promise for one in promised.values()} == {"at-least-once"}
    assert "at most the last batch" in promised[None].reason
    assert "a few batches" in promised["0 seconds"].reason
    assert "about 1 second of work" in promised["1 second"].reason
