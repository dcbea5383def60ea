"""What Continuous Processing leaves out of a log of offsets is put in, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.checkpoint.after_continuous import complete
from penstock.storage.storage import LocalStorage


@pytest.fixture
def offsets(tmp_path: Path) -> Path:
    folder = tmp_path / "offsets"
    folder.mkdir()
    return folder


def test_a_missing_watermark_is_put_in(tmp_path: Path, offsets: Path) -> None:
    for batch in (7, 8):
        (offsets / str(batch)).write_text('v1\n\n{"orders":{"0":10}}')
        (offsets / f".{batch}.crc").touch()
    complete(LocalStorage(), str(tmp_path))
    assert (offsets / "8").read_text() == (
        'v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}\n{"orders":{"0":10}}'
    )
    assert not (offsets / ".8.crc").exists(), "the sum of what was there before"
    assert (offsets / "7").read_text() == 'v1\n\n{"orders":{"0":10}}'
    assert (offsets / ".7.crc").exists()


def test_a_log_of_batches_stays_as_it_is(tmp_path: Path, offsets: Path) -> None:
    text = 'v1\n{"batchWatermarkMs":5,"batchTimestampMs":6,"conf":{}}\n{"orders":{"0":10}}'
    (offsets / "8").write_text(text)
    (offsets / ".8.crc").touch()
    complete(LocalStorage(), str(tmp_path))
    assert (offsets / "8").read_text() == text
    assert (offsets / ".8.crc").exists()


def test_a_query_that_never_ran_has_nothing_to_complete(tmp_path: Path) -> None:
    complete(LocalStorage(), str(tmp_path))
    assert list(tmp_path.iterdir()) == []
