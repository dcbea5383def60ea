"""What Continuous Processing leaves out of a checkpoint's log of offsets.

It writes no watermark there, for it has none. Micro-batches fail without one, as they begin: so a checkpoint of the one
does not serve the other, as Spark's guide says it does. With a watermark of 0 it does.
"""

from __future__ import annotations

from penstock.storage.batch_log import newest_batch
from penstock.storage.storage import Storage, join

_METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}'


def complete(storage: Storage, checkpoint_folder: str) -> None:
    """Lets Spark go on in batches. Offsets stay as they are. Raises OSError."""
    newest = newest_batch(storage, join(checkpoint_folder, "offsets"))
    if newest is None:
        return
    file = join(checkpoint_folder, "offsets", str(newest))
    version, *lines = storage.read_text(file).split("\n")
    if not lines:
        return  # the file is cut off: Spark refuses it by name
    said, *offsets = lines
    if not said and offsets:
        storage.write_text(file, "\n".join((version, _METADATA, *offsets)))
