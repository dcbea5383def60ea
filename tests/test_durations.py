"""Durations as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.notation.durations import to_milliseconds, to_spark, to_words

_UNITS = {"milliseconds": 1, "seconds": 1_000, "minutes": 60_000, "hours": 3_600_000, "days": 86_400_000}


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("10 minutes", 600_000),
        ("1 minute", 60_000),
        ("500ms", 500),
        ("2s", 2_000),
        ("5 min", 300_000),
        ("3 h", 10_800_000),
        ("1 week", 604_800_000),
        ("1 hour 30 minutes", 5_400_000),
        ("1.5 seconds", 1_500),
        ("  10   SECONDS ", 10_000),
        ("0 seconds", 0),
    ],
)
def test_reads_durations(text: str, milliseconds: int) -> None:
    assert to_milliseconds(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "10", "minutes", "ten minutes", "10 parsecs", "-5 seconds", "10 seconds or so", "5 minutes 3", "1e3 s",
     "9" * 30 + " weeks", "9" * 400 + " days"],
)  # fmt: skip
def test_refuses_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        to_milliseconds(text)


@given(st.text())
def test_any_text_is_a_duration_or_a_value_error(text: str) -> None:
    try:
        said, length = "", to_milliseconds(text)
    except ValueError as error:
        said, length = str(error), 0
    assert not said or "is not a duration" in said
    assert length >= 0


@given(st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from(sorted(_UNITS))), min_size=1, max_size=4))
def test_parts_add_up_and_spark_gets_the_same_length(parts: list[tuple[int, str]]) -> None:
    text = " ".join(f"{count} {unit}" for count, unit in parts)
    expected = sum(count * _UNITS[unit] for count, unit in parts)
    assert to_milliseconds(text) == expected
    assert to_milliseconds(to_spark(text)) == expected


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0, "0 ms"), (850, "850 ms"), (12_345, "12.3 s"), (245_000, "4 min 5 s"), (7_380_000, "2 h 3 min")],
)
def test_says_durations_in_words(milliseconds: float, words: str) -> None:
    assert to_words(milliseconds) == words
