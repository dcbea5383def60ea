"""Order events as they come in real life: some late, some twice, some broken. The same for the same seed."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

_CITIES = ("Berlin", "Hamburg", "Bremen", "Munich", "Stuttgart", "Nuremberg", "Cologne", "Essen", "Dresden", "Leipzig")
_BEGIN = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
_MINUTES_PER_FILE = 2


@dataclass(frozen=True)
class Feed:
    """What was written."""

    rows: int = 0
    orders: int = 0
    malformed: int = 0
    duplicates: int = 0
    very_late: int = 0
    """Later than the watermark waits for, if a batch is as long as a file."""

    def __add__(self, other: Feed) -> Feed:
        return Feed(*(mine + theirs for mine, theirs in zip(vars(self).values(), vars(other).values(), strict=True)))


def order_files(files: int, rows_per_file: int = 200, seed: int = 7) -> Iterator[tuple[str, Feed]]:
    """The text of each file and what is in it; every file covers two minutes of event time."""
    chance = random.Random(seed)  # noqa: S311 - events, not secrets
    number = 0
    for index in range(files):
        begin = _BEGIN + timedelta(minutes=index * _MINUTES_PER_FILE)
        lines: list[str] = []
        counted = Feed()
        for _ in range(rows_per_file):
            kind = chance.random()
            if kind < 0.02:
                lines.append(_broken(chance))
                counted += Feed(rows=1, malformed=1)
                continue
            number += 1
            late = index >= 12 and kind < 0.03
            at = begin + timedelta(seconds=chance.uniform(0, _MINUTES_PER_FILE * 60))
            at -= timedelta(minutes=45) if late else timedelta(minutes=2 if kind < 0.08 else 0)
            line = _order(number, at, chance, index)
            lines.append(line)
            counted += Feed(rows=1, orders=0 if late else 1, very_late=int(late))
            if 0.08 <= kind < 0.11:
                lines.append(line)
                counted += Feed(rows=1, duplicates=1)
        yield "\n".join(lines) + "\n", counted


def place(text: str, folder: Path, name: str) -> None:
    """Puts a file into a folder whole: written under a name that Spark passes over, then renamed."""
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{name}.tmp"
    draft.write_text(text, encoding="utf-8")
    draft.replace(folder / name)


def _order(number: int, at: datetime, chance: random.Random, index: int) -> str:
    # A slow wave over the hour, so that the picture at the end has a shape.
    amount = round(chance.uniform(5, 60) * (1 + 0.6 * abs(((index % 20) - 10) / 10)), 2)
    stamp = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return json.dumps(
        {"order_id": f"o{number:06d}", "city": chance.choice(_CITIES), "amount": amount, "event_time": stamp}
    )


def _broken(chance: random.Random) -> str:
    return chance.choice(('{"order_id": "o', "not json at all", "{city: Berlin, amount}", '["an", "array"'))
