"""Gaps that asynchronous progress leaves in a log of offsets, and how they are closed."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.checkpoint.gaps import NoEarlierBatch, close, missing
from penstock.storage.storage import LocalStorage


@pytest.mark.parametrize(
    ("offsets", "commits", "found"),
    [
        pytest.param([], [], {}, id="never ran"),
        pytest.param([0], [], {}, id="in its first batch"),
        pytest.param([0, 1, 2], [0, 1, 2], {}, id="every batch is there"),
        pytest.param([0, 1, 2], [0, 1], {}, id="a batch is under way"),
        pytest.param([0, 5, 10, 11], [0, 5, 10, 11], {}, id="a gap further back is never asked for"),
        pytest.param([0, 5, 11], [0, 5, 11], {10: 5}, id="before a committed batch"),
        pytest.param([0, 5, 11], [0, 5], {10: 5, 4: 0}, id="real time drops the batch under way and asks for another"),
        pytest.param([5, 11], [5], {10: 5, 4: 5}, id="the same where older ones were purged"),
        pytest.param([11], [11], {10: 11}, id="all before a committed batch is purged"),
        pytest.param([0, 3], [], {2: 0}, id="nothing is committed"),
    ],
)
def test_the_newest_batch_before_it_stands_for_a_missing_one(
    offsets: list[int], commits: list[int], found: dict[int, int]
) -> None:
    assert missing(offsets, commits) == found


def test_nothing_is_guessed_where_the_start_of_a_batch_is_not_known() -> None:
    with pytest.raises(NoEarlierBatch, match="batch 11"):
        missing([11], [9])


def test_a_gap_is_closed_once_with_the_text_of_an_older_batch(tmp_path: Path) -> None:
    for log, batches in (("offsets", (0, 5, 11)), ("commits", (0, 5, 11))):
        (tmp_path / log).mkdir()
        for batch in batches:
            (tmp_path / log / str(batch)).write_text(f"v1\n{{}}\n{log} {batch}")
    (tmp_path / "offsets/.11.crc").write_text("a sum")
    for _ in range(2):
        close(LocalStorage(), str(tmp_path))
        assert sorted(path.name for path in (tmp_path / "offsets").iterdir()) == [".11.crc", "0", "10", "11", "5"]
        assert (tmp_path / "offsets/10").read_text() == "v1\n{}\noffsets 5"
