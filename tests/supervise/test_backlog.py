"""How much of the files that waited is taken: read from the logs of a checkpoint, each entry once."""

from __future__ import annotations

import json
from pathlib import Path

from penstock.storage.storage import LocalStorage
from penstock.supervise.backlog import Backlog, FilesTaken
from tests.conftest import place


class Counting(LocalStorage):
    """Counts what it reads."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def read_text(self, path: str) -> str:
        text = super().read_text(path)
        self.read.append(Path(path).name)
        return text


def write(checkpoint: Path, number: int, files: int = 1, source: int = 0) -> None:
    """As Spark writes an entry; each tenth repeats all before it."""
    lines = [json.dumps({"path": f"file:///in/{number}-{n}", "timestamp": 1, "batchId": number}) for n in range(files)]
    log = checkpoint / "sources" / str(source)
    if (number + 1) % 10 == 0:
        earlier = [log / str(n) for n in range(number - 9, number)]
        whole = log / f"{number - 10}.compact"
        kept = [line for path in [whole, *earlier] if path.exists() for line in path.read_text().splitlines()[1:]]
        place(log / f"{number}.compact", "\n".join(["v1", *kept, *lines]))
        for path in earlier:
            path.unlink(missing_ok=True)
    else:
        place(log / str(number), "\n".join(["v1", *lines]))


def test_every_entry_is_read_once(tmp_path):
    storage = Counting()
    taken = FilesTaken(storage, str(tmp_path))
    assert taken.count() == 0
    for number in range(35):
        write(tmp_path, number, files=2)
        assert taken.count() == 2 * (number + 1)
        assert taken.count() == 2 * (number + 1)
    assert len(storage.read) == 35


def test_a_long_history_is_counted_from_its_newest_compacted_entry(tmp_path):
    for number in range(127):
        write(tmp_path, number)
    storage = Counting()
    assert FilesTaken(storage, str(tmp_path)).count() == 127
    assert sorted(storage.read) == sorted(["119.compact", *map(str, range(120, 127))])


def test_the_share_is_of_what_waited_at_the_start(tmp_path):
    write(tmp_path, 0, files=4)
    waiting = Backlog(14, FilesTaken(LocalStorage(), str(tmp_path)))
    assert waiting.share == 0
    write(tmp_path, 1, files=3)
    write(tmp_path, 0, files=2, source=1)
    assert waiting.share == 0.5
    write(tmp_path, 2, files=30)
    assert waiting.share == 1


def test_nothing_waited(tmp_path):
    assert Backlog(0, FilesTaken(LocalStorage(), str(tmp_path))).share == 1
