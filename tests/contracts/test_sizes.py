"""A file can be read at one sitting."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST_LINES = 400


def test_no_file_is_longer_than_four_hundred_lines() -> None:
    lines = {
        file.relative_to(ROOT).as_posix(): len(file.read_text().splitlines())
        for folder in ("src", "scripts")
        for file in (ROOT / folder).rglob("*.py")
    }
    assert {file: count for file, count in lines.items() if count > MOST_LINES} == {}
