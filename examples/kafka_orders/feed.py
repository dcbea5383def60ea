"""Puts each line of a file into a topic: `python feed.py orders input/orders.jsonl`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from confluent_kafka import Producer


def feed(servers: str, topic: str, file: Path) -> int:
    """Returns how many lines there were, when the broker has them all."""
    producer = Producer({"bootstrap.servers": servers})
    lines = file.read_bytes().splitlines()
    for line in lines:
        producer.produce(topic, line)
    if producer.flush(30):
        raise SystemExit(f"{servers} does not take all records within 30 seconds")
    return len(lines)


if __name__ == "__main__":
    into, name = sys.argv[1:]
    count = feed(os.environ.get("KAFKA_SERVERS", "127.0.0.1:9092"), into, Path(name))
    print(f"{count} records are in `{into}`")
