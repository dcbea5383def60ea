"""The guide's story of late words, row by row: ten-minute windows every five minutes, ten minutes of patience."""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest

from tests.conftest import place
from tests.models import collected

pytestmark = pytest.mark.spark

PIPELINE = """
pipeline: words
latency: low
sources:
  words:
    type: files
    path: in
    max_files_per_trigger: 1
    format: {type: json, schema: "at TIMESTAMP, word STRING"}
    watermark: {column: at, delay: 10 minutes}
steps:
  updated: {sql: &counts "SELECT date_format(w.start, 'HH:mm'), word, n FROM (SELECT window(at, '10 minutes',
    '5 minutes') AS w, word, count(*) AS n FROM words GROUP BY window(at, '10 minutes', '5 minutes'), word)"}
  appended: {sql: *counts}
sinks:
  updated_rows: {of: updated, type: python, each_batch: "tests.models.collected:keep"}
  appended_rows: {of: appended, type: python, each_batch: "tests.models.collected:keep"}
queries:
  updated: {mode: update, spark: {spark.sql.shuffle.partitions: 1}}
  appended: {mode: append, spark: {spark.sql.shuffle.partitions: 1}}
"""
TRIGGERS = (
    ("12:07 dog", "12:08 owl"),
    ("12:14 dog",),  # the watermark is 12:04 from here on
    ("12:09 cat", "12:08 dog", "12:21 owl"),  # late, but not too late; the watermark is 12:11 from here on
    ("12:04 donkey", "12:17 owl"),
)
"""What has come when each trigger fires."""
UPDATED = (
    ("12:00 dog 1", "12:00 owl 1", "12:05 dog 1", "12:05 owl 1"),
    ("12:05 dog 2", "12:10 dog 1"),
    ("12:00 cat 1", "12:05 cat 1", "12:00 dog 2", "12:05 dog 3", "12:15 owl 1", "12:20 owl 1"),
    ("12:10 owl 1", "12:15 owl 2"),
)
APPENDED = ((), (), ("12:00 cat 1", "12:00 dog 2", "12:00 owl 1"), ())


def text_of(words: tuple[str, ...]) -> str:
    pairs = (word.split() for word in words)
    return "".join(json.dumps({"at": f"2026-01-01T{at}:00Z", "word": word}) + "\n" for at, word in pairs)


def rows(sink: str) -> Counter[str]:
    """What a sink got since it was asked last."""
    batches = collected.held.pop(sink, {}).values()
    return Counter(" ".join(map(str, row)) for batch in batches for row in batch.elements())


@pytest.mark.covers("late.update", "late.append", "late.counted", "late.dropped", "window.sliding")
def test_words_are_counted_as_long_as_they_are_not_too_late(project_at, run_once):
    root = project_at(PIPELINE)
    collected.held.clear()
    for number, words in enumerate(TRIGGERS):
        place(root / "in" / f"{number}.json", text_of(words))
        assert run_once(root).ok
        assert rows("updated_rows") == Counter(UPDATED[number])
        assert rows("appended_rows") == Counter(APPENDED[number])


@pytest.mark.covers("late.guarantee", "trigger.available-now.watermark")
def test_a_batch_judges_lateness_by_the_watermark_of_the_one_before(project_at, run_once):
    """Where batches follow without a rest the donkey still counts: what is not too late is never dropped, what is may
    be."""
    root = project_at(PIPELINE)
    for number, words in enumerate(TRIGGERS):
        place(root / "in" / f"{number}.json", text_of(words))
        os.utime(root / "in" / f"{number}.json", (1_700_000_000 + number,) * 2)
    collected.held.clear()
    assert run_once(root).ok
    counted = rows("updated_rows")
    assert counted == Counter([*(row for rows in UPDATED for row in rows), "11:55 donkey 1", "12:00 donkey 1"])
    assert rows("appended_rows") == Counter([*APPENDED[2], "11:55 donkey 1", "12:00 donkey 1"])
