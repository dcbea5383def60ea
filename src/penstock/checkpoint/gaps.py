"""Gaps in a checkpoint's log of offsets. Asynchronous progress leaves them, and no other way of running gets over one.

Spark goes on from the newest batch that is planned; in real time, from the newest that is committed. It begins that
batch where the one before it ended, and asks for that one by its number less one. Asynchronous progress takes the
newest before it that is written down, whatever its number. A copy of that file under the missing number says the same:
the batches in between were empty, and the newest has all their rows. So nothing is passed over. What was not committed
is written once more, as it would be with asynchronous progress.
"""

from __future__ import annotations

from collections.abc import Collection

from penstock.storage.batch_log import batches
from penstock.storage.storage import Storage, join


class NoEarlierBatch(Exception):
    """A batch is not committed, and where it began is not written down anywhere."""

    def __init__(self, batch: int) -> None:
        super().__init__(f"batch {batch} is not committed, and no batch before it is written down")
        self.batch = batch


def missing(offsets: Collection[int], commits: Collection[int]) -> dict[int, int]:
    """By batch that Spark will ask for and that is not there: the one whose offsets stand for it. Pure.

    Raises NoEarlierBatch.
    """
    newest_commit = max(commits, default=-1)
    done = [batch for batch in offsets if batch <= newest_commit]
    found: dict[int, int] = {}
    for newest in {max(offsets, default=0), max(done, default=0)}:
        if newest == 0 or newest - 1 in offsets:
            continue
        earlier = max((batch for batch in offsets if batch < newest), default=None)
        if earlier is None and newest > newest_commit:
            raise NoEarlierBatch(newest)
        # All of a committed batch is done: where it began is asked for and not used.
        found[newest - 1] = newest if earlier is None else earlier
    return found


def close(storage: Storage, checkpoint_folder: str) -> None:
    """Lets Spark go on without asynchronous progress. A crash within does no harm. Raises NoEarlierBatch, OSError."""
    folder = join(checkpoint_folder, "offsets")
    found = missing(*(batches(storage, join(checkpoint_folder, log)) for log in ("offsets", "commits")))
    for batch, like in found.items():
        storage.write_text(join(folder, str(batch)), storage.read_text(join(folder, str(like))))
