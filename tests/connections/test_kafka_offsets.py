"""What is lost when a topic has no more what a checkpoint would read next."""

from __future__ import annotations

from pathlib import Path

from penstock.connections.kafka_offsets import Lost, count, in_log, lost_ranges, next_offsets, to_json
from penstock.storage.storage import LocalStorage
from tests.conftest import place

LOG = """\
v1
{"batchWatermarkMs":0,"conf":{"spark.sql.shuffle.partitions":"2"}}
{"orders":{"1":7,"0":100}}
{"logOffset":3}
-
5"""


def test_lost_ranges_are_told_partition_by_partition() -> None:
    wanted = {"orders": {0: 100, 1: 10, 2: 5, 3: 9, 4: 3}, "gone": {0: 1}}
    earliest = {"orders": {0: 150, 1: 10, 2: 6, 3: 0}}
    latest = {"orders": {0: 200, 1: 10, 2: 6, 3: 4}}
    lost = lost_ranges(wanted, earliest, latest)
    assert lost[0] == Lost("gone", 0, 1, None)
    assert [str(one) for one in lost] == [
        "gone-0: the partition is gone, all from offset 1 on",
        "orders-0: offsets 100 to 149 are gone (50 records)",
        "orders-2: offsets 5 to 5 are gone (1 record)",
        "orders-3: it ends at offset 4 and should go on at 9; the topic was deleted and made anew",
        "orders-4: the partition is gone, all from offset 3 on",
    ]
    assert count(lost) == 51


def test_nothing_is_lost_where_a_partition_was_never_read() -> None:
    assert lost_ranges({}, {"orders": {0: 5}}, {"orders": {0: 9}}) == []
    assert lost_ranges({"orders": {0: 5}}, {"orders": {0: 5}}, {"orders": {0: 5}}) == []


def test_the_offsets_of_a_source_are_found_in_the_log() -> None:
    assert in_log(LOG, lambda topic: topic == "orders") == {"orders": {0: 100, 1: 7}}
    assert in_log(LOG, lambda topic: False) == {}
    assert in_log('v1\n{}\n{"a":{"0":5}}\n{"a":{"0":3}}', lambda topic: True) == {"a": {0: 3}}


def test_a_checkpoint_goes_on_behind_its_last_commit(tmp_path: Path) -> None:
    def orders(topic: str) -> bool:
        return topic == "orders"

    storage = LocalStorage()
    assert next_offsets(storage, str(tmp_path), orders) == {}
    place(tmp_path / "sources" / "0" / "0", '\0v1\n{"orders":{"0":3}}')
    assert next_offsets(storage, str(tmp_path), orders) == {"orders": {0: 3}}
    place(tmp_path / "offsets" / "0", LOG)
    place(tmp_path / "offsets" / "1", LOG.replace("100", "200"))
    place(tmp_path / "commits" / "0", "v1\n{}")
    assert next_offsets(storage, str(tmp_path), orders) == {"orders": {0: 100, 1: 7}}


def test_offsets_are_spelled_as_spark_takes_them() -> None:
    assert to_json({"orders": {0: -2, 1: 5}}) == '{"orders": {"0": -2, "1": 5}}'
