"""The two kinds of sums that lie beside the files of a checkpoint.

Hadoop's local file system writes `.<name>.crc`: `crc\\0`, the number of bytes in a chunk, then a CRC-32 for each chunk.
Spark 4.1 writes `<name>.crc` beside files of state: JSON with a CRC-32C of the whole file and its size.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass

_HEAD = b"crc\0"
_CASTAGNOLI = 0x82F63B78
_MOST_BYTES = 32_000_000
"""Spark's own sums of larger files are compared by size alone: Python would compute for minutes."""


@dataclass(frozen=True)
class StateSum:
    """What Spark has noted of a file of state. The moment and the task make it unlike that of any other file."""

    value: int
    size: int
    moment_ms: int
    creator: str


def hadoop_sum_file(name: str) -> str:
    return f".{name}.crc"


def hadoop_sum_fits(content: bytes, sums: bytes) -> bool:
    """Is it the content that Hadoop has summed up? A sum file that is none fits nothing."""
    if len(sums) < 8 or sums[:4] != _HEAD:
        return False
    (chunk,) = struct.unpack(">i", sums[4:8])
    if chunk <= 0 or (len(sums) - 8) % 4:
        return False
    noted = list(struct.unpack(f">{(len(sums) - 8) // 4}I", sums[8:]))
    return noted == [zlib.crc32(content[start : start + chunk]) for start in range(0, len(content), chunk)]


def state_sum(text: str) -> StateSum:
    """Raises ValueError."""
    try:
        said = json.loads(text)
        return StateSum(
            int(said["value"]), int(said["mainFileSize"]), int(said["timestampMs"]), json.dumps(said.get("creator"))
        )
    except (LookupError, TypeError) as error:
        raise ValueError(str(error)) from None


def state_sum_fits(content: bytes, noted: StateSum) -> bool:
    if len(content) != noted.size:
        return False
    return len(content) > _MOST_BYTES or crc32c(content) == noted.value & 0xFFFFFFFF


def crc32c(content: bytes) -> int:
    value = 0xFFFFFFFF
    for byte in content:
        value = _TABLE[(value ^ byte) & 0xFF] ^ (value >> 8)
    return value ^ 0xFFFFFFFF


def _entry(index: int) -> int:
    for _ in range(8):
        index = (index >> 1) ^ _CASTAGNOLI if index & 1 else index >> 1
    return index


_TABLE = tuple(map(_entry, range(256)))
