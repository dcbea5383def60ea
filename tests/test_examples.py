"""Every example is run as its README says, and gives what its `expected/` holds."""

from __future__ import annotations

import importlib.util
import json
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.actions.check import check
from penstock.actions.dead_letters import show_letters
from penstock.actions.run import RunResult
from penstock.dead_letters.letters import LetterFilter
from penstock.pipeline.load import load
from penstock.pipeline.model import Pipeline
from penstock.prepare.needs import StartEngine
from tests.services import await_rows, await_true, consume, create_topic

covers = pytest.mark.covers
EXAMPLES = Path(__file__).parents[1] / "examples"
NAMES = sorted(folder.name for folder in EXAMPLES.iterdir() if (folder / "README.md").is_file())


def copied(name: str, to: Path) -> Path:
    ignored = shutil.ignore_patterns("out", "storage", ".penstock", "__pycache__")
    return Path(shutil.copytree(EXAMPLES / name, to / name, ignore=ignored))


def pipeline_of(root: Path) -> Pipeline:
    file = next(path.name for path in (root / "pipeline.yaml", root / "pipeline.py") if path.is_file())
    return load(root, [file]).pipelines[0]


def normal(row: str) -> str:
    """With sums of money alike in whichever order they were added."""
    return json.dumps(json.loads(row, parse_float=lambda text: round(float(text), 6)), sort_keys=True)


def expected(file: Path) -> list[str]:
    return sorted(normal(line) for line in file.read_text().splitlines() if line)


def rows_of(spark, root: Path, pipeline: Pipeline, folder: str) -> list[str]:
    spec = next(sink.spec for sink in pipeline.sinks if sink.spec.path == f"out/{folder}")
    frame = spark.read.format(spec.format.type if spec.type == "files" else spec.type).load(str(root / spec.path))
    return sorted(map(normal, frame.toJSON().collect()))


def in_delta(spark, folder: Path) -> list[str]:
    return sorted(map(normal, spark.read.format("delta").load(str(folder)).toJSON().collect()))


def in_topic(servers: str, topic: str) -> list[str]:
    return sorted(normal(message.value()) for message in consume(servers, topic))


def module_of(file: Path) -> ModuleType:
    """A script of an example, as its README has it run."""
    spec = importlib.util.spec_from_file_location(f"example_{file.parent.name}_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def example(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the example that the test is named after: `test_<name>` or `test_<name>__<what it shows>`."""
    return copied(request.node.originalname.removeprefix("test_").partition("__")[0], tmp_path)


@pytest.fixture
def run_well(run_once: Callable[..., RunResult]) -> Callable[..., RunResult]:
    def run_it(root: Path, *selection: str) -> RunResult:
        result = run_once(root, *selection)
        assert result.ok, result.problems
        return result

    return run_it


@pytest.fixture
def letters(start_engine: StartEngine) -> Callable[[Path], list[str]]:
    """What `penstock dead-letters show` tells of each: the record, why, and where it was."""

    def told(root: Path) -> list[str]:
        shown = show_letters(root, (), None, LetterFilter(), None, start_engine).letters
        keys = ("node", "check", "reason", "raw", "topic", "offset")
        found = [{key: value for key, value in one.to_json().items() if key in keys} for one in shown]
        known = [{key: value for key, value in one.items() if value is not None} for one in found]
        return sorted(normal(json.dumps(one)) for one in known)

    return told


@pytest.fixture
def broker(kafka, monkeypatch) -> Callable[..., Callable[[str], list[str]]]:
    """Makes the topics, feeds the first one as the README says, and gives a function to read any of them."""

    def fed(root: Path, topic: str, *others: str) -> Callable[[str], list[str]]:
        monkeypatch.setenv("KAFKA_SERVERS", kafka.servers)
        for name in (topic, *others):
            create_topic(kafka.servers, name)
        module_of(EXAMPLES / "kafka_orders" / "feed.py").feed(kafka.servers, topic, root / "input" / f"{topic}.jsonl")
        return lambda name: in_topic(kafka.servers, name)

    return fed


@pytest.mark.parametrize("name", NAMES)
def test_a_fast_check_finds_nothing(name, tmp_path, monkeypatch):
    for variable in ("KAFKA_SERVERS", "PG_URL", "ALERTS_URL", "ALERTS_TOKEN", "PORT"):
        monkeypatch.delenv(variable, raising=False)
    root = copied(name, tmp_path)
    alone = tuple(file.name for file in (*root.glob("*.yaml"), root / "pipeline.py") if file.is_file())
    alone = () if "penstock.yaml" in alone else alone
    assert check(root, alone, None, None).problems == ()


@pytest.mark.spark
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("csv_folder", marks=covers("operation.select", "operation.sql")),
        pytest.param("orders", marks=covers("join.static.inner", "dedup.within", "late.append")),
        "orders_python",
    ],
)
def test_it_gives_what_is_expected_and_nothing_twice(name, tmp_path, run_once, spark):
    root = copied(name, tmp_path)
    pipeline = pipeline_of(root)
    for _ in range(2):
        file = Path(pipeline.origin.where.file).name
        assert run_once(root, file).ok
        for file in sorted((root / "expected").iterdir()):
            assert rows_of(spark, root, pipeline, file.stem) == expected(file)


@pytest.mark.spark
@pytest.mark.parametrize(
    "file",
    [
        pytest.param("a_then_b/pipeline.yaml", marks=covers("state.values", "state.timers")),
        pytest.param("ad_clicks/pipeline.yaml", marks=covers("join.left", "join.time-range", "join.outer.delay")),
        pytest.param("card_fraud/pipeline.yaml", marks=covers("state.ready-made")),
        pytest.param(
            "iot_temperature/pipeline.yaml", marks=covers("window.tumbling", "window.sliding", "late.dropped")
        ),
        pytest.param("online_model/pipeline.yaml", marks=covers("state.values")),
        pytest.param("retried_events/pipeline.yaml", marks=covers("dedup.within")),
        pytest.param("web_sessions/pipeline.yaml", marks=covers("state.ready-made")),
        pytest.param("word_count/modes.yaml", marks=covers("model.append", "model.update", "model.complete")),
    ],
)
def test_it_goes_on_with_what_comes_later(file, tmp_path, run_well, spark):
    name, _, file = file.partition("/")
    root = copied(name, tmp_path)
    pipeline = load(root, [file]).pipelines[0]
    for stage in ("first", "later"):
        if stage == "later":
            shutil.copytree(root / "later", root / "input", dirs_exist_ok=True)
        run_well(root, file)
        for wanted in sorted((root / "expected" / stage).iterdir()):
            assert rows_of(spark, root, pipeline, wanted.stem) == expected(wanted)


def test_yaml_and_python_are_the_same_model(tmp_path):
    in_yaml, in_python = (pipeline_of(copied(name, tmp_path)) for name in ("orders", "orders_python"))
    assert in_yaml == in_python
    assert in_yaml.origin != in_python.origin


@pytest.mark.covers("quick.word-count", "source.socket", "model.complete")
@pytest.mark.spark
def test_words_from_a_socket_are_counted(tmp_path, start_engine, monkeypatch):
    from penstock.actions.run import RunOptions, run
    from penstock.supervise.query_view import Snapshot
    from penstock.supervise.stopping import Stop

    root = copied("word_count", tmp_path)
    server = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setenv("PORT", str(server.getsockname()[1]))
    lines = (root / "input" / "lines.txt").read_bytes()
    clients: list[socket.socket] = []

    def serve() -> None:
        client, _ = server.accept()
        clients.append(client)
        client.sendall(lines)

    threading.Thread(target=serve, daemon=True).start()
    printed: list[str] = []
    stop = Stop()

    def until_all_is_counted(snapshot: Snapshot) -> None:
        if snapshot.queries[0].rows_in == 3 and not stop.asked:
            stop.ask()

    result = run(
        root,
        ("pipeline.yaml",),
        None,
        RunOptions(for_seconds=60),
        start_engine,
        stop,
        until_all_is_counted,
        printed.append,
    )
    for connection in (*clients, server):
        connection.close()
    assert result.ok
    last = printed[len(printed) - printed[::-1].index("|   word|times|") :]
    cells = [line.strip("|").split("|") for line in last if line.startswith("|")]
    counts = {word.strip(): int(times) for word, times in cells}
    wanted = map(json.loads, expected(root / "expected" / "screen.json"))
    assert counts == {row["word"]: row["times"] for row in wanted}


@pytest.mark.spark
@pytest.mark.services
def test_kafka_orders(example, broker, run_well, letters, spark):
    read = broker(example, "orders", "revenue")
    for _ in range(2):
        run_well(example)
        assert in_delta(spark, example / "out" / "revenue") == expected(example / "expected" / "revenue.json")
        assert read("revenue") == expected(example / "expected" / "revenue.json")
        assert letters(example) == expected(example / "expected" / "dead_letters.json")


@pytest.mark.spark
@pytest.mark.services
def test_fan_out(example, broker, run_well, letters):
    topics = ("events.click", "events.order", "events.other")
    read = broker(example, "events", "events.dead", *topics)
    for _ in range(2):
        run_well(example)
        for topic in topics:
            assert read(topic) == expected(example / "expected" / f"{topic}.json")
        assert letters(example) == expected(example / "expected" / "dead_letters.json")


@pytest.mark.spark
@pytest.mark.services
@pytest.mark.parametrize(
    ("pipeline", "given", "taken"),
    [
        pytest.param("routed", ["signals"], "kept"),
        pytest.param("fraud", ["payments"], "features"),
        pytest.param("offers", ["searches"], "matched"),
        pytest.param("telemetry", ["engines", "brakes"], "warnings"),
    ],
)
def test_realtime(example, broker, running, kafka, pipeline, given, taken):
    read = broker(example, given[0], taken)
    for topic in given[1:]:
        broker(example, topic)
    wanted = expected(example / "expected" / f"{taken}.json")
    with running(example, pipeline):
        await_rows(kafka.servers, taken, len(wanted))
    assert read(taken) == wanted


LAYERS = ("bronze", "silver", "gold")


def layers(spark, root: Path) -> list[list[str]]:
    return [in_delta(spark, root / "out" / layer) for layer in LAYERS]


def expected_layers(root: Path, stage: str) -> list[list[str]]:
    return [expected(root / "expected" / stage / f"{layer}.json") for layer in LAYERS]


@covers("refused.two-queries")
@pytest.mark.spark
def test_medallion(example, run_well, letters, spark, start_engine):
    """On a fresh copy: no table is there yet. A new file flows through all three in one run."""
    assert check(example, (), None, start_engine).problems == ()
    assert not (example / "out").exists()
    for stage in ("first", "later"):
        if stage == "later":
            shutil.copytree(example / "later", example / "input", dirs_exist_ok=True)
        ran = [query.pipeline for query in run_well(example).queries]
        assert list(dict.fromkeys(ran)) == ["bronze", "silver", "gold"]
        assert layers(spark, example) == expected_layers(example, stage)
        assert letters(example) == expected(example / "expected" / "dead_letters.json")


@pytest.mark.spark
def test_medallion__live(example, running, spark):
    """`penstock run +gold` on a fresh copy: all three start together, and a file that comes later flows through."""
    with running(example, "+gold"):
        for stage in ("first", "later"):
            shutil.copytree(example / "later", example / "input", dirs_exist_ok=True) if stage == "later" else None
            wanted = expected(example / "expected" / stage / "gold.json")
            await_true(lambda: in_delta(spark, example / "out" / "gold") == wanted)  # noqa: B023 - called at once
            assert layers(spark, example) == expected_layers(example, stage)


@pytest.mark.spark
@pytest.mark.services
def test_two_stores(example, run_well, spark, postgres, pg, monkeypatch):
    monkeypatch.setenv("PG_URL", postgres.url)
    for _ in range(2):
        run_well(example)
        assert in_delta(spark, example / "out" / "history") == expected(example / "expected" / "history.json")
        for table in ("orders", "batches"):
            rows = [normal(row) for (row,) in pg.execute(f"SELECT row_to_json(t)::text FROM {table} t").fetchall()]
            assert sorted(rows) == expected(example / "expected" / f"{table}.json")


@pytest.fixture
def alerts(monkeypatch) -> Iterator[dict[str, Any]]:
    """The alerts that the example's own server has taken, by their idempotency keys."""
    module = module_of(EXAMPLES / "http_alerts" / "server.py")
    monkeypatch.setattr(module.Alerts, "log_message", lambda *told: None)
    with module.serve(0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("ALERTS_URL", f"http://127.0.0.1:{server.server_port}")
        yield module.Alerts.taken
        server.shutdown()


@pytest.mark.spark
def test_http_alerts(example, run_once, run_well, letters, alerts, monkeypatch):
    monkeypatch.setenv("ALERTS_TOKEN", "a wrong one")
    assert [problem.code for problem in run_once(example).problems] == ["HTTP003"]
    monkeypatch.delenv("ALERTS_TOKEN")
    for _ in range(2):
        run_well(example)
        taken = sorted(normal(json.dumps(alert)) for alert in alerts.values())
        assert taken == expected(example / "expected" / "alerts.json")
        assert letters(example) == expected(example / "expected" / "dead_letters.json")


@pytest.mark.spark
def test_iceberg_round_trip(example, run_well, spark):
    for stage in ("first", "later"):
        if stage == "later":
            shutil.copytree(example / "later", example / "input", dirs_exist_ok=True)
        for table in ("changes", "accounts"):
            run_well(example, table)
            rows = spark.read.format("iceberg").load(str(example / "out" / "lake" / "bank" / table)).toJSON()
            assert sorted(map(normal, rows.collect())) == expected(example / "expected" / stage / f"{table}.json")


@pytest.mark.spark
def test_growing_schema(example, run_well, spark):
    def found() -> list[str]:
        rows = spark.read.format("delta").load(str(example / "out" / "readings")).toJSON().collect()
        # What is rescued names its file by the whole path, which is another one on each machine.
        return sorted(normal(row.replace(f"file:{example}/", "")) for row in rows)

    assert run_well(example).queries[0].restarts == 0
    assert found() == expected(example / "expected" / "first" / "readings.json")
    shutil.copytree(example / "later", example / "input", dirs_exist_ok=True)
    assert run_well(example).queries[0].restarts == 1
    assert found() == expected(example / "expected" / "later" / "readings.json")
    run_well(example)
    assert found() == expected(example / "expected" / "later" / "readings.json")
