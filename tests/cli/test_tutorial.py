"""The tutorial, followed step by step on the real engine: what the page shows is what the commands print.

Run with `PENSTOCK_WRITE_TUTORIAL=1`, it writes what they print into the page; `make docs` does that.
Comments of the page, which readers do not see, say what happens between two commands:

- `<!-- insert pipelines/orders.yaml -->`: the next YAML block goes into that file, key by key.
- `<!-- replace pipelines/orders.yaml: this => that -->`: the reader changes a line.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/tutorial.md"
_PART = re.compile(
    r"^<!-- insert (?P<into>\S+) -->\n+```yaml\n(?P<yaml>.*?)^```$"
    r"|^<!-- replace (?P<file>\S+): (?P<old>[^\n]+?) => (?P<new>[^\n]+?) -->$"
    r"|^```sh\n(?P<shell>.*?)^```$"
    r"|^```text\n(?P<commands>(?:\$ [^\n]+\n)+)(?P<printed>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_CLOCK = re.compile(r"^\d\d:\d\d:\d\d ", re.MULTILINE)
_HEARTBEAT = re.compile(r"^00:00:00 \S+ (starting|running|waiting) · ")
_TAKEN = re.compile(r" · (\d+\.\d s|\d+ ms)")


def comparable(printed: str) -> list[str]:
    """Without what differs from run to run: the time, how long it took, which query was first, and how a query is
    after 30 seconds, which a busy machine may need."""
    lines = _TAKEN.sub(" · 0.0 s", _CLOCK.sub("00:00:00 ", printed)).splitlines()
    lines = [line for line in lines if not _HEARTBEAT.match(line)]
    return sorted(lines) if any(line.startswith("00:00:00 ") for line in lines) else lines


class Reader:
    """Somebody who does what the page says."""

    def __init__(self, folder: Path, penstock: Callable) -> None:
        self.folder, self._penstock = folder, penstock

    def does(self, part: re.Match[str]) -> str | None:
        """Follows one part of the page; gives what was printed where the page shows it."""
        if part["into"]:
            self._insert(self.folder / part["into"], part["yaml"])
        elif part["file"]:
            file = self.folder / part["file"]
            assert file.read_text().count(part["old"]) == 1, part[0]
            file.write_text(file.read_text().replace(part["old"], part["new"]))
        elif part["shell"]:
            subprocess.run(["sh", "-ec", part["shell"]], cwd=self.folder, check=True)
        else:
            return "".join(self._run(line.removeprefix("$ ")) for line in part["commands"].splitlines())
        return None

    def _run(self, command: str) -> str:
        program, *arguments = shlex.split(command)
        if program == "cd":
            self.folder = self.folder / arguments[0]
            return ""
        assert program == "penstock"
        ended = self._penstock(*arguments, at=self.folder)
        return "".join(f"{line.rstrip()}\n" for line in (ended.out + ended.err).splitlines())

    def _insert(self, file: Path, block: str) -> None:
        lines = file.read_text().splitlines()
        for section in re.split(r"^(?=\w)", block, flags=re.MULTILINE)[1:]:
            key, *body = section.rstrip().splitlines()
            at = lines.index(key) + 1
            while at < len(lines) and lines[at].strip():
                at += 1
            lines[at:at] = body
        file.write_text("\n".join(lines) + "\n")


@pytest.mark.spark
def test_the_tutorial_shows_what_the_commands_print(tmp_path, penstock, on_shared_spark):
    page = PAGE.read_text(encoding="utf-8")
    reader = Reader(tmp_path, penstock)
    written, end, wrong = "", 0, []
    for part in _PART.finditer(page):
        printed = reader.does(part)
        if printed is None:
            continue
        if comparable(printed) != comparable(part["printed"]):
            wrong.append(f"{part['commands']}{printed}")
            written += page[end : part.start("printed")] + printed
            end = part.end("printed")
    if os.environ.get("PENSTOCK_WRITE_TUTORIAL"):
        PAGE.write_text(written + page[end:], encoding="utf-8")
        return
    assert not wrong, "run `make docs`; the page shows something else than:\n" + "\n".join(wrong)
