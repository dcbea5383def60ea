"""How far a query is behind, while it is in the middle of a batch."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from penstock import Pipeline, sinks, sources
from penstock.facts.observed import Unread
from penstock.problems import Fault
from penstock.sources.lag_meter import Committed
from penstock.storage.storage import LocalStorage
from penstock.supervise import lag
from penstock.supervise.lag import LagPoller
from tests.conftest import place
from tests.services import produce
from tests.sources.conftest import wait_for

NOWHERE = Committed((), LocalStorage(), "nowhere")
_gate = threading.Event()


def slow(rows, batch) -> None:
    """The first batch goes through; every later one waits for the gate."""
    assert batch.number == 0 or _gate.wait(300)
    rows.count()


@pytest.mark.spark
@pytest.mark.services
def test_what_comes_during_a_batch_is_seen_before_the_batch_ends(tmp_path, kafka, topic, spark):
    """Of Kafka records, of files in a folder with a blank and of versions of a Delta table."""
    _gate.clear()
    name = topic(partitions=2)
    folder, table = tmp_path / "in coming", str(tmp_path / "table")

    def arrive(step: int, records: int) -> None:
        produce(kafka.servers, name, [f"{step}-{number}" for number in range(records)])
        place(folder / f"{step}.txt", "a\n")
        spark.range(1).write.format("delta").mode("append").save(table)

    pipeline = Pipeline("lagging", latency="low")
    pipeline.source("records", sources.Kafka(servers=kafka.servers, topics=(name,), starting="earliest", format="text"))
    pipeline.source("lines", sources.Files(path=str(folder), format="text"))
    pipeline.source("versions", sources.Delta(path=table))
    for source in ("records", "lines", "versions"):
        pipeline.sink(f"{source}_out", sinks.Python(each_batch=slow), of=source)
    arrive(0, 5)
    with pipeline.start(project=tmp_path) as handle:

        def lags() -> dict[str, Unread]:
            found = {source: unread for query in handle.snapshot.queries for source, unread in query.lag.items()}
            assert handle.is_active
            return found

        def are(records: int, files: int) -> bool:
            units = {"records": Unread(records, "record"), "lines": Unread(files, "file")}
            return lags() == units | {"versions": Unread(files, "version")}

        wait_for(lambda: are(0, 0))
        arrive(1, 7)
        wait_for(lambda: are(7, 1))
        under_way = {query.name: query.batches for query in handle.snapshot.queries}
        arrive(2, 3)  # while batch 1 waits
        wait_for(lambda: are(10, 2))
        assert {query.name: query.batches for query in handle.snapshot.queries} == under_way
        _gate.set()
        wait_for(lambda: are(0, 0))
    assert not [thread for thread in threading.enumerate() if thread.name == "penstock-lag" and _is_left(thread)]


def _is_left(thread: threading.Thread) -> bool:
    thread.join(30)
    return thread.is_alive()


class Meter:
    """A source that answers what it is given, or raises it."""

    def __init__(self, *answers: Unread | Exception) -> None:
        self.answers, self.asked_at = list(answers), list[float]()

    def unread(self, committed: Committed) -> Unread | None:
        self.asked_at.append(time.monotonic())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag, "ASK_SECONDS", 0.02)


def test_while_a_source_is_away_the_last_answer_stays_and_it_is_asked_less_often(quick):
    meter = Meter(Unread(3, "record"), Fault("KAFKA001", "away", "wait"))
    poller = LagPoller({"orders": meter}, lambda: NOWHERE)
    poller.begin()
    wait_for(lambda: len(meter.asked_at) >= 5, 30)
    poller.end()
    assert poller.seen is not None
    assert poller.seen.unread == {"orders": Unread(3, "record")}
    pauses = [after - before for before, after in zip(meter.asked_at, meter.asked_at[1:], strict=False)]
    assert pauses[3] > 2 * pauses[0]


def test_a_run_that_is_over_asks_no_more_and_one_without_meters_has_no_thread(quick):
    meter = Meter(Unread(1, "record"))
    poller = LagPoller({"orders": meter}, lambda: NOWHERE)
    poller.begin()
    poller.begin()  # after a restart
    wait_for(lambda: meter.asked_at, 30)
    poller.end()
    wait_for(lambda: not any(thread.name == "penstock-lag" for thread in threading.enumerate()), 30)
    count = len(meter.asked_at)
    time.sleep(0.1)
    assert len(meter.asked_at) == count
    LagPoller({}, lambda: NOWHERE).begin()
    assert not any(thread.name == "penstock-lag" for thread in threading.enumerate())


def test_a_folder_that_a_file_sink_wrote_is_not_counted(tmp_path: Path):
    place(tmp_path / "a.txt", "a")
    place(tmp_path / "_hidden" / "b.txt", "b")
    meter = sources.Files(path=str(tmp_path), format="text").lag_meter()
    assert meter is not None
    assert meter.unread(NOWHERE) == Unread(1, "file")
    place(tmp_path / "_spark_metadata" / "0", "v1")
    assert meter.unread(NOWHERE) is None


@pytest.mark.parametrize("more", [{"path_glob_filter": "*.csv"}, {"max_file_age": "1 hour"}, {"file_name_only": True}])
def test_a_folder_of_which_spark_picks_files_is_not_counted(more):
    assert sources.Files(path="in", format="text", **more).lag_meter() is None
    assert sources.Files(path="in", format="text").lag_meter() is not None
    assert sources.Files(path="s3a://bucket/in", format="text").lag_meter() is None
