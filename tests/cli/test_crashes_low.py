"""kill -9 of `latency: low`, at random moments, while records come: a copy whose progress is written down beside the
work, and a count whose state goes with every batch.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from statistics import mean, median

import pytest

from tests.conftest import place
from tests.kills import run_and_kill, run_to_the_end, written
from tests.services import LiveRecords, consume

pytestmark = [pytest.mark.spark, pytest.mark.services, pytest.mark.proof]

KILLS = 10
WITHIN_SECONDS = 6.0
"""A JVM that has just started takes seconds to its first quick batches; only those are not all written down."""
KEYS = 7
PROJECT = """\
name: crashes
spark:
  # A process that lives for seconds is up sooner without Java's second compiler.
  spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1
"""
PIPELINE = f"""\
pipeline: quick
latency: low
listeners: [timing:Times]
sources:
  orders:
    type: kafka
    servers: SERVERS
    topics: [GIVEN]
    starting: earliest
    format: {{type: json, schema: "id BIGINT"}}
steps:
  copies: {{sql: "SELECT id FROM orders"}}
  counts: {{sql: "SELECT id % {KEYS} AS key, count(*) AS n FROM orders GROUP BY id % {KEYS}"}}
sinks:
  copied: {{of: copies, type: kafka, servers: SERVERS, topic: COPIED}}
  counted: {{of: counts, type: kafka, servers: SERVERS, topic: COUNTED, key: [key]}}
queries: {{counts: {{mode: update}}}}
"""
TIMING = """\
import json

from pyspark.sql.streaming.listener import StreamingQueryListener


class Times(StreamingQueryListener):
    def onQueryStarted(self, event):
        pass

    def onQueryProgress(self, event):
        with open("times.jsonl", "a") as file:
            file.write(json.dumps([str(event.progress.id), event.progress.durationMs]) + "\\n")

    def onQueryTerminated(self, event):
        pass
"""


def told_times(file: Path, checkpoint: Path) -> str:
    """How long the batches of a query waited for its logs, from Spark's own progress."""
    id_of_query = json.loads((checkpoint / "metadata").read_text())["id"]
    told = [json.loads(line) for line in file.read_text().splitlines()]
    waits = [
        parts["walCommit"] + parts["commitOffsets"]
        for query, parts in told
        # One that is run again has its offsets written down already.
        if query == id_of_query and {"walCommit", "commitOffsets"} <= parts.keys()
    ]
    return (
        f"{checkpoint.parent.name}: walCommit + commitOffsets of {len(waits)} batches:"
        f" mean {mean(waits):.1f} ms, median {median(waits):.0f} ms"
    )


@pytest.mark.covers("recovery.crash", "async.progress")
def test_ten_crashes_of_low_lose_no_id_and_no_count(tmp_path, kafka, topic):
    root, given, copied, counted = tmp_path / "crashes", topic(partitions=2), topic(), topic()
    text = PIPELINE.replace("GIVEN", given).replace("COPIED", copied).replace("COUNTED", counted)
    place(root / "penstock.yaml", PROJECT)
    place(root / "timing.py", TIMING)
    place(root / "pipelines/quick.yaml", text.replace("SERVERS", kafka.servers))
    copies, counts = (root / "storage/checkpoints/quick" / query / "0001" for query in ("copies", "counts"))
    dice = random.Random(6)
    began = time.monotonic()
    with LiveRecords(kafka.servers, given) as orders:
        for _ in range(KILLS):
            run_and_kill(root, [copies, counts], WITHIN_SECONDS, dice)
    offsets = written(copies, "offsets")
    assert len(offsets) < offsets[-1] - offsets[0] + 1, "progress was written down for each batch"
    run_to_the_end(root)

    found = Counter(json.loads(message.value())["id"] for message in consume(kafka.servers, copied))
    repeats = found.total() - len(found)
    print(f"{orders.count} ids, {repeats} written again by {KILLS} crashes in {time.monotonic() - began:.0f} s")
    print(*(told_times(root / "times.jsonl", checkpoint) for checkpoint in (copies, counts)), sep="\n")
    assert set(found) == set(range(orders.count))

    seen = defaultdict[int, list[int]](list)
    for message in consume(kafka.servers, counted):
        row = json.loads(message.value())
        seen[row["key"]].append(row["n"])
    assert {key: numbers[-1] for key, numbers in seen.items()} == Counter(n % KEYS for n in range(orders.count))
    # A batch that is run again gives what it gave before: no count ever goes back.
    assert all(numbers == sorted(numbers) for numbers in seen.values())
