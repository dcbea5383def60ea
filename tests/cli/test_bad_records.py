"""100,000 records of Kafka, one in a hundred bad in one of six ways: nothing stops, nothing is lost, all come back."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from tests.conftest import place
from tests.services import consume, produce

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.usefixtures("on_shared_spark")]

RECORDS = 100_000
FRAME = b"\0\0\0\0\x01"
KINDS = ("broken", "magic", "cast", "null", "oversize", "function")
PIPELINE = """\
pipeline: orders
latency: low
sources:
  orders:
    type: kafka
    servers: ${KAFKA_SERVERS}
    topics: ["${TOPIC}"]
    starting: earliest
    max_record_bytes: 1000
    format: {type: json, framed: true, schema: "id BIGINT, amount DOUBLE"}
    on_bad_record: dead_letter
functions:
  root: {python: "scores:root", returns: DOUBLE}
steps:
  scored: {sql: "SELECT id, root(amount) AS root FROM orders"}
sinks:
  out: {of: scored, type: delta, path: out}
"""
SCORES = """\
import math

def root(amount):
    return math.sqrt(amount)
"""


def good(number: int) -> bytes:
    return FRAME + json.dumps({"id": number, "amount": number / 2}).encode()


def bad(number: int, kind: str) -> bytes | None:
    match kind:
        case "broken":
            return FRAME + f'{{"id": {number}, "amount": '.encode()
        case "magic":
            return b"\7" + good(number)[1:]
        case "cast":
            return FRAME + f'{{"id": {number}, "amount": "much"}}'.encode()
        case "null":
            return None
        case "oversize":
            return FRAME + json.dumps({"id": number, "amount": 1, "more": "x" * 2_000}).encode()
        case _:
            return FRAME + json.dumps({"id": number, "amount": -1}).encode()


def kind_of(number: int) -> str | None:
    return KINDS[number // 100 % len(KINDS)] if number % 100 == 0 else None


def test_bad_records_are_put_aside_and_come_back(tmp_path, penstock, kafka, topic, spark, monkeypatch):
    root = tmp_path / "orders"
    place(root / "penstock.yaml", "name: orders\n")
    place(root / "pipelines/orders.yaml", PIPELINE)
    place(root / "scores.py", SCORES)
    name = topic(partitions=2)
    monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
    monkeypatch.setenv("TOPIC", name)
    kinds = {number: kind_of(number) for number in range(RECORDS)}
    values = [good(number) if kind is None else bad(number, kind) for number, kind in kinds.items()]
    produce(kafka.servers, name, values)
    expected = Counter(kind for kind in kinds.values() if kind)
    places = {
        (message.partition(), message.offset()): (message.value(), message.error())
        for message in consume(kafka.servers, name)
    }

    ran = penstock("run", "--once", "--json", at=root)
    assert ran.code == 0, ran.out
    queries = {query["query"]: query for query in ran.json["queries"]}
    assert ran.json["problems"] == []
    assert queries["scored"]["rows_out"] == RECORDS - sum(expected.values())
    assert queries["scored"]["bad_rows"] == sum(expected.values())
    assert queries["orders_dead_letters"]["rows_out"] == sum(expected.values()) - expected["function"]
    assert queries["scored_dead_letters"]["rows_out"] == expected["function"]

    letters = [
        row
        for node in ("orders", "scored")
        for row in spark.read.parquet(str(root / "dead_letters/orders" / node)).collect()
    ]
    assert len({(row.partition, row.offset) for row in letters}) == len(letters) == sum(expected.values())
    told = Counter()
    for row in letters:
        value, _ = places[row.partition, row.offset]
        assert row.topic == name
        assert (bytes(row.raw) if row.raw is not None else None) == value
        told[word_for(row.reason)] += 1
    assert told == expected

    exported = penstock("dead-letters", "export", at=root)
    assert exported.code == 0, exported.err
    mended = mend(exported.out, letters, kinds)
    place(root / "mended.jsonl", mended)
    replayed = penstock("dead-letters", "replay", "--from", root / "mended.jsonl", "--json", at=root)
    assert replayed.code == 0, replayed.out
    again = penstock("run", "--once", "--json", at=root)
    assert again.code == 0, again.out
    out = Counter(row.id for row in spark.read.format("delta").load(str(root / "out")).collect())
    assert set(out) == set(range(RECORDS))
    assert set(out.values()) == {1}


def word_for(reason: str) -> str:
    """The kind of a bad record, from the reason that a user reads."""
    words = {
        "magic byte": "magic",
        "is NULL": "null",
        "max_record_bytes": "oversize",
        "root(": "function",
        "not JSON": "broken",
        "amount": "cast",
    }
    return next((kind for word, kind in words.items() if word in reason), "broken")


def mend(exported: str, letters: list, kinds: dict[int, str | None]) -> str:
    """What a user would do with an editor: each bad value becomes the good one of the same id."""
    missing = sorted(number for number, kind in kinds.items() if kind == "null")
    lines = []
    for line in exported.splitlines():
        letter = json.loads(line)
        number = id_in(letter)
        letter.pop("raw_base64", None)
        letter["raw"] = good(missing.pop() if number is None else number).decode()
        lines.append(json.dumps(letter))
    return "\n".join(lines) + "\n"


def id_in(letter: dict) -> int | None:
    import base64
    import re

    raw = base64.b64decode(letter["raw_base64"]) if letter.get("raw_base64") else (letter.get("raw") or "").encode()
    found = re.search(rb'"id": (\d+)', raw)
    return int(found[1]) if found else None
