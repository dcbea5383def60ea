"""`penstock checkpoint`: list, show, verify, and a new beginning whose output is exact."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from penstock.actions.checkpoint import list_checkpoints, show_checkpoint, verify_checkpoints
from penstock.actions.checkpoint_reset import Output, ResetPlace, ResetPlan, ResetResult, reset_checkpoint
from penstock.checkpoint.lock import held_without_spark
from penstock.engine.broker import Broker
from penstock.prepare.needs import StartEngine
from penstock.problems import UserError, errors_in
from tests.postgres import Postgres
from tests.services import produce

pytestmark = pytest.mark.spark

SOURCE = """\
sources:
  orders:
    type: files
    path: data/orders
    format: {type: json, schema: "id LONG, k STRING"}
    max_files_per_trigger: 1
"""
FILES = f"""\
pipeline: shop
{SOURCE}
steps: {{rows: {{sql: "SELECT id, k FROM orders"}}}}
sinks: {{out: {{of: rows, type: files, path: out/rows, format: json}}}}
"""
DELTA = f"""\
pipeline: shop
{SOURCE}
steps: {{counts: {{sql: "SELECT k, count(*) AS n FROM orders GROUP BY k"}}}}
sinks: {{out: {{of: counts, type: delta, path: out/counts, write: upsert, keys: [k]}}}}
queries: {{counts: {{mode: update}}}}
"""
KAFKA = """\
pipeline: shop
sources: {orders: {type: kafka, servers: "SERVERS", topics: [TOPIC], starting: earliest, format: text}}
steps: {rows: {sql: "SELECT CAST(value AS LONG) AS id FROM orders"}}
sinks: {out: {of: rows, type: files, path: out/rows, format: json}}
"""
POSTGRES = f"""\
pipeline: shop
{SOURCE}
steps: {{rows: {{sql: "SELECT id, k FROM orders"}}}}
sinks: {{out: {{of: rows, type: postgres, url: "${{PG_URL}}", table: rows, create_table: true}}}}
"""


def order(root: Path, number: int) -> None:
    file = root / "data" / "orders" / f"{number:03d}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"id": number, "k": f"k{number % 2}"}) + "\n")
    os.utime(file, (1_767_225_600 + number, 1_767_225_600 + number))


@pytest.fixture
def shop(project_at: Callable[..., Path]) -> Callable[[str], Path]:
    def made(text: str) -> Path:
        root = project_at(text, settings="name: test\nspark: {spark.sql.shuffle.partitions: 1}\n")
        for number in range(3):
            order(root, number)
        return root

    return made


@pytest.fixture
def reset(start_engine: StartEngine) -> Callable[..., ResetResult]:
    def made(root: Path, query: str, place: str, output: Output | None = None, moment_ms: int | None = None) -> Any:
        return reset_checkpoint(
            root, query, None, ResetPlace(place, moment_ms), output, lambda plan: True, start_engine
        )

    return made


def problems_of(call: Callable[[], object]) -> list[str]:
    with pytest.raises(UserError) as raised:
        call()
    return [problem.code for problem in raised.value.problems]


def ids(root: Path) -> Counter[int]:
    """What a reader of the folder sees: the files that its log names."""
    found: Counter[int] = Counter()
    paths: set[str] = set()
    for log in (root / "out" / "rows" / "_spark_metadata").iterdir():
        if log.name.removesuffix(".compact").isdigit():
            paths |= {json.loads(line)["path"] for line in log.read_text().splitlines() if line.startswith("{")}
    for path in paths:
        file = root / "out" / "rows" / path.rpartition("/")[2]
        found.update(json.loads(line)["id"] for line in file.read_text().splitlines())
    return found


def once(run_once: Callable[..., Any], root: Path) -> None:
    result = run_once(root)
    assert not errors_in(result.problems), result.problems


def test_files_are_written_again_from_the_beginning(
    shop: Callable[[str], Path],
    run_once: Callable[..., Any],
    reset: Callable[..., ResetResult],
    start_engine: StartEngine,
) -> None:
    root = shop(FILES)
    once(run_once, root)
    assert ids(root) == {0: 1, 1: 1, 2: 1}
    assert problems_of(lambda: reset(root, "rows", "earliest")) == ["CHECKPOINT025"]
    made = reset(root, "rows", "earliest", "empty")
    assert (made.plan.generation, made.emptied) == (2, ("out",))
    order(root, 3)
    once(run_once, root)
    assert ids(root) == dict.fromkeys(range(4), 1)  # as a fresh run over all input
    made = reset(root, "rows", "earliest", "keep")
    once(run_once, root)
    assert ids(root) == dict.fromkeys(range(4), 2)  # beside those that were there
    reset(root, "rows", "offsets")
    order(root, 4)
    once(run_once, root)
    assert ids(root) == {**dict.fromkeys(range(4), 2), 4: 1}
    order(root, 5)
    reset(root, "shop.rows", "latest")
    order(root, 6)
    once(run_once, root)
    assert ids(root) == {**dict.fromkeys(range(4), 2), 4: 1, 6: 1}  # 5 was there when it began
    reset(root, "rows", "2026-01-01T00:00:05Z", "empty", (1_767_225_600 + 5) * 1_000)
    once(run_once, root)
    assert ids(root) == {5: 1, 6: 1}
    (listed,) = list_checkpoints(root, (), None, start_engine).checkpoints
    assert (listed.number, listed.is_started) == (6, True)
    shown = show_checkpoint(root, "rows", None, start_engine)
    assert [one.number for one in shown.generations] == [1, 2, 3, 4, 5, 6]
    assert list(shown.sources) == ["orders"]
    verified = verify_checkpoints(root, None, None, start_engine)
    assert verified.ok, verified.problems


def test_a_stateful_query_is_built_again(
    shop: Callable[[str], Path],
    run_once: Callable[..., Any],
    reset: Callable[..., ResetResult],
    start_engine: StartEngine,
) -> None:
    root = shop(DELTA)
    once(run_once, root)
    spark = start_engine(None, (), {}).spark  # type: ignore[arg-type] # the shared one needs no project

    def rows() -> dict[str, int]:
        return {row.k: row.n for row in spark.read.format("delta").load(str(root / "out" / "counts")).collect()}

    assert rows() == {"k0": 2, "k1": 1}
    for place in ("offsets", "latest"):
        assert problems_of(lambda place=place: reset(root, "counts", place)) == ["CHECKPOINT024"]
    made = reset(root, "counts", "earliest")
    assert made.plan.output == "keep"
    assert "state begins empty" in made.plan.notes[0]
    order(root, 3)
    once(run_once, root)
    assert rows() == {"k0": 2, "k1": 2}
    reset(root, "counts", "earliest", "empty")
    assert not list((root / "out" / "counts").iterdir())
    once(run_once, root)
    assert rows() == {"k0": 2, "k1": 2}
    # An older checkpoint that is put back: the table is ahead of it.
    verified = verify_checkpoints(root, "counts", None, start_engine)
    assert verified.ok, verified.problems
    checkpoint = root / "storage/checkpoints/shop/counts/0003"
    (checkpoint.with_suffix(".seal")).unlink()
    for log, number in (("offsets", 3), ("commits", 3), ("sources/0", 3)):
        (checkpoint / log / str(number)).unlink()
        (checkpoint / log / f".{number}.crc").unlink(missing_ok=True)
    assert problems_of(lambda: run_once(root)) == ["LEDGER002"]
    assert rows() == {"k0": 2, "k1": 2}


@pytest.mark.services
def test_a_table_of_postgres_is_emptied_first(
    shop: Callable[[str], Path],
    run_once: Callable[..., Any],
    reset: Callable[..., ResetResult],
    postgres: Postgres,
    pg: psycopg.Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PG_URL", postgres.url)
    root = shop(POSTGRES)
    once(run_once, root)

    def rows() -> list[int]:
        return [row[0] for row in pg.execute("SELECT id FROM rows ORDER BY id").fetchall()]

    assert rows() == [0, 1, 2]
    reset(root, "rows", "earliest", "empty")
    assert rows() == []
    order(root, 3)
    once(run_once, root)
    assert rows() == [0, 1, 2, 3]
    reset(root, "rows", "earliest", "keep")
    once(run_once, root)
    assert rows() == [0, 0, 1, 1, 2, 2, 3, 3]
    pg.execute("DROP TABLE rows")
    assert problems_of(lambda: run_once(root)) == ["LEDGER003"]


@pytest.mark.services
def test_a_topic_is_read_from_where_the_user_says(
    project_at: Callable[..., Path],
    run_once: Callable[..., Any],
    reset: Callable[..., ResetResult],
    kafka: Broker,
    topic: Callable[..., str],
) -> None:
    name = topic(partitions=2)
    root = project_at(KAFKA.replace("SERVERS", kafka.servers).replace("TOPIC", name))
    produce(kafka.servers, name, ["0", "1"])
    once(run_once, root)
    produce(kafka.servers, name, ["2"])
    reset(root, "rows", "offsets")
    once(run_once, root)
    assert ids(root) == {0: 1, 1: 1, 2: 1}
    produce(kafka.servers, name, ["3"])
    reset(root, "rows", "latest")
    between = round(time.time() * 1_000)
    produce(kafka.servers, name, ["4"])
    once(run_once, root)
    assert ids(root) == {0: 1, 1: 1, 2: 1, 4: 1}  # 3 was there when it began
    reset(root, "rows", "a moment", "empty", between)
    once(run_once, root)
    assert ids(root) == {4: 1}
    # The text keeps state now, and the new checkpoint has none for its place.
    reset(root, "rows", "offsets")
    file = root / "pipelines/p0.yaml"
    file.write_text(file.read_text().replace("AS id FROM orders", "AS id FROM orders GROUP BY value")
                    .replace("type: files, path: out/rows, format: json", "type: python, each_batch: 'kept:keep'")
                    + "queries: {rows: {mode: update}}\n")  # fmt: skip
    (root / "kept.py").write_text("def keep(rows, batch): rows.count()\n")
    assert problems_of(lambda: run_once(root)) == ["CHECKPOINT024"]


def test_what_is_not_confirmed_changes_nothing(
    shop: Callable[[str], Path], run_once: Callable[..., Any], start_engine: StartEngine
) -> None:
    root = shop(FILES)
    assert problems_of(lambda: show_checkpoint(root, "rows", None, start_engine)) == ["CHECKPOINT023"]
    assert problems_of(lambda: show_checkpoint(root, "row", None, start_engine)) == ["CHECKPOINT023"]
    once(run_once, root)
    before = {file: file.read_bytes() for file in root.rglob("*") if file.is_file()}
    plans: list[ResetPlan] = []

    def no(plan: ResetPlan) -> bool:
        plans.append(plan)
        return False

    def asked() -> ResetResult:
        return reset_checkpoint(root, "rows", None, ResetPlace("earliest"), "empty", no, start_engine)

    assert problems_of(asked) == ["CHECKPOINT025"]
    assert plans[0].sinks[0].effect == "is emptied first"
    assert before == {file: file.read_bytes() for file in root.rglob("*") if file.is_file() and file in before}
    assert not (root / "storage/checkpoints/shop/rows/0002.json").exists()


def test_a_reset_that_was_killed_is_seen(
    shop: Callable[[str], Path],
    run_once: Callable[..., Any],
    reset: Callable[..., ResetResult],
    start_engine: StartEngine,
) -> None:
    root = shop(FILES)
    once(run_once, root)
    folder = root / "storage/checkpoints/shop/rows"
    # Before the manifest: it never happened.
    (folder / "0002").mkdir()
    (folder / "0002" / "metadata").write_text('{"id": "x"}')
    (folder / "0002.reset").write_text("{}")
    order(root, 3)
    once(run_once, root)
    assert ids(root) == dict.fromkeys(range(4), 1)
    # After it: the next start says so, and running the reset again makes it whole.
    reset(root, "rows", "earliest", "empty")
    (folder / "0003.reset").write_text("{}")
    assert problems_of(lambda: run_once(root)) == ["CHECKPOINT027"]
    reset(root, "rows", "earliest", "empty")
    once(run_once, root)
    assert ids(root) == dict.fromkeys(range(4), 1)


def test_a_running_pipeline_is_not_reset(
    shop: Callable[[str], Path], run_once: Callable[..., Any], reset: Callable[..., ResetResult]
) -> None:
    root = shop(FILES)
    once(run_once, root)
    child = os.fork()
    if child == 0:  # a lock of this very process would not be seen
        with held_without_spark(root / "storage" / "locks", "shop"):
            (root / "held").touch()
            while not (root / "done").exists():
                pass
        os._exit(0)
    try:
        while not (root / "held").exists():
            pass
        assert problems_of(lambda: reset(root, "rows", "earliest", "empty")) == ["CHECKPOINT003"]
    finally:
        (root / "done").touch()
        os.waitpid(child, 0)
