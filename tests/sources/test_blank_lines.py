"""Lines that Spark's CSV reader takes for blank although they hold control characters."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from penstock.sources import Files
from penstock.sources.blank_lines import can_look, dropped_lines

CASES = {
    "NULs": (b"1,a\n\0\0\0\n2,b\n", [2]),
    "other control characters": (b"\x01\x1f\n1,a\n \x1a \n", [1, 3]),
    "blank lines are blank": (b"\n1,a\n  \n\t\t\n\x0b\x0c\r\n", []),
    "in a line with text": (b"1,a\0\n\0 2\n", []),
    "every end of a line": (b"1\r\0\r\n2\n\0", [2, 4]),
    "letters beyond ASCII": ("ä\n\u00a0\n\u2028\n".encode(), []),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("content", "lines"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("packed", ["", ".gz", ".bz2"])
def test_dropped_lines_are_found(tmp_path: Path, content, lines, packed):
    file = tmp_path / f"a.csv{packed}"
    file.write_bytes({"": lambda one: one, ".gz": gzip.compress, ".bz2": bz2.compress}[packed](content))
    assert dropped_lines(file) == lines


def test_a_line_that_crosses_chunks_and_one_with_a_separator_of_its_own(tmp_path: Path):
    file = tmp_path / "a.csv"
    file.write_bytes(b"x" * (1 << 20) + b"\n" + b"\0" * (2 << 20) + b"\n1\n")
    assert dropped_lines(file) == [2]
    file.write_bytes(b"1;\0;2;\n")
    assert dropped_lines(file, ";") == [2]


@pytest.mark.parametrize(
    ("keys", "format_keys", "looks"),
    [
        ({}, {}, True),
        ({"on_bad_record": "drop"}, {"encoding": "ISO-8859-1"}, True),
        ({}, {"encoding": "UTF-16LE"}, False),
        ({}, {"encoding": "x-unheard-of"}, False),
        ({}, {"multi_line": True}, False),
        ({}, {"mode": "permissive"}, False),
        ({"path": "hdfs://name/in"}, {}, False),
        ({}, {"type": "json"}, False),
    ],
)
def test_which_sources_are_looked_at(keys, format_keys, looks):
    source = {"path": "/in", "format": {"type": "csv", "schema": "id BIGINT"} | format_keys} | keys
    assert can_look(Files.model_validate(source)) is looks
