"""Dead letters on the real engine: put aside, looked at, mended, put back, and in the output once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.actions.dead_letters import list_letters, replay_letters, show_letters
from penstock.dead_letters.letters import LetterFilter
from penstock.dead_letters.replay.arrived import HEADER
from penstock.dead_letters.replay.planning import ReplayOptions
from penstock.dead_letters.replay_notes import ReplayNotes
from penstock.problems import UserError
from penstock.storage.storage import LocalStorage
from tests.conftest import place
from tests.frames import frame
from tests.services import consume, produce

pytestmark = pytest.mark.spark
services = pytest.mark.services

JSON = """
pipeline: shop
sources:
  orders:
    type: files
    path: in
    format: {type: json, schema: "id BIGINT, amount BIGINT"}
    on_bad_record: dead_letter
    expect: {positive: {that: amount > 0, otherwise: dead_letter}}
sinks:
  out: {of: orders, type: files, path: out, format: parquet}
"""
ALL = LetterFilter()


@pytest.fixture
def listed(start_engine):
    return lambda root, node=None: list_letters(root, (), None, node, start_engine)


@pytest.fixture
def shown(start_engine):
    return lambda root, choice=ALL, limit=None, **more: show_letters(
        root, (), None, choice, limit, start_engine, **more
    )


@pytest.fixture
def replayed(start_engine):
    return lambda root, choice=ALL, **options: replay_letters(
        root, (), None, choice, ReplayOptions(**options), start_engine
    )


@pytest.fixture
def export(shown, tmp_path):
    """Writes letters to a file, each `raw` mended by a function of it and of the letter."""

    def written(root, mend, choice=ALL, **more) -> Path:
        letters = [one.to_json() for one in shown(root, choice, **more).letters]
        file = tmp_path / "letters.jsonl"
        file.write_text("".join(json.dumps(one | {"raw": mend(one)}) + "\n" for one in letters))
        return file

    return written


def ids(spark, path: Path) -> list[int]:
    return sorted(row.id for row in spark.read.parquet(str(path)).collect())


def statuses(result) -> dict[str, int]:
    return dict(result.counts)


def test_full_circle_of_json_files(project_at, run_once, spark, listed, shown, export, replayed):
    lines = (
        '{"id": 1, "amount": 5}\n{"id": 2, "amount": \n{"id": 3, "amount": -7}\n{"id": "x"}\n{"id": 5, "amount": 1}\n'
    )
    root = project_at(JSON, files={"in/a b.json": lines})
    assert run_once(root).ok
    assert ids(spark, root / "out") == [1, 5]

    groups = {(group.node, group.check): group for group in listed(root).groups}
    assert {key: group.letters for key, group in groups.items()} == {
        ("orders", "decoded"): 2,
        ("orders", "positive"): 1,
    }
    assert groups["orders", "positive"].reason == "not so: amount > 0"

    found = {one.letter.raw: one for one in shown(root).letters}
    assert found[b'{"id": 2, "amount": '].lines == (2,)
    assert found[b'{"id": "x"}'].lines == (4,)
    assert found[b'{"id":3,"amount":-7}'].lines == ()
    assert all(one.letter.file.endswith("/in/a%20b.json") for one in found.values())

    mends = {b'{"id": 2, "amount": ': '{"id": 2,\n "amount": 2}', b'{"id": "x"}': '{"id": 4, "amount": 4}'}
    file = export(root, lambda one: mends.get(one["raw"].encode(), one["raw"]))
    dry = replayed(root, corrected=file, dry_run=True)
    assert statuses(dry) == {"would be sent": 2, "unchanged": 1}
    assert len(list((root / "in").iterdir())) == 1
    assert statuses(replayed(root, corrected=file)) == {"sent": 2, "unchanged": 1}
    assert statuses(replayed(root, corrected=file)) == {"sent before": 2, "unchanged": 1}
    assert len(list((root / "in").iterdir())) == 2

    file = export(root, lambda one: one["raw"].replace("-", ""), LetterFilter(checks=("positive",)), again=False)
    assert statuses(replayed(root, corrected=file)) == {"sent": 1}
    assert statuses(replayed(root)) == {"sent before": 3}
    assert run_once(root).ok
    assert ids(spark, root / "out") == [1, 2, 3, 4, 5]
    assert {group.replayed for group in listed(root).groups} == {1, 2}
    with pytest.raises(UserError) as raised:
        shown(root, again=False)
    assert [problem.code for problem in raised.value.problems] == ["DEADLETTER001"]


def test_what_is_sent_unchanged_is_put_aside_again_and_again_sends_it_twice(project_at, run_once, listed, replayed):
    root = project_at(JSON, files={"in/a.json": '{"id": 1, "amount": -1}\n'})
    run_once(root)
    assert statuses(replayed(root)) == {"sent": 1}
    run_once(root)
    assert listed(root).letters == 2  # the new one came from another file: it is another letter
    assert statuses(replayed(root)) == {"sent before": 1, "sent": 1}
    assert statuses(replayed(root, again=True)) == {"sent": 2}


CSV = """
pipeline: shop
sources:
  orders:
    type: files
    path: in
    format: {type: csv, header: true, sep: ";", schema: "id BIGINT, amount DOUBLE, day DATE", date_format: dd.MM.yyyy}
    on_bad_record: dead_letter
    expect: {positive: {that: amount > 0, otherwise: dead_letter}}
sinks:
  out: {of: orders, type: files, path: out, format: parquet}
"""


def test_csv_gets_its_header_and_rows_their_own_spelling(project_at, run_once, spark, shown, export, replayed):
    text = "id;amount;day\n1;5;01.02.2026\n2;-5;02.02.2026\nx;1;03.02.2026\nx;1;03.02.2026\n"
    root = project_at(CSV, files={"in/a.csv": text})
    run_once(root)
    assert [one.lines for one in shown(root).letters if one.letter.check == "decoded"] == [(4, 5), (4, 5)]
    new = iter((3, 4))
    file = export(
        root,
        lambda one: one["raw"].replace(":-", ":") if one["check"] == "positive" else f"{next(new)}{one['raw'][1:]}",
    )
    assert statuses(replayed(root, corrected=file)) == {"sent": 3}
    assert not list((root / "in").glob(".penstock*"))
    assert run_once(root).ok
    rows = {(row.id, row.amount, str(row.day)) for row in spark.read.parquet(str(root / "out")).collect()}
    assert rows == {
        (1, 5.0, "2026-02-01"),
        (2, 5.0, "2026-02-02"),
        (3, 1.0, "2026-02-03"),
        (4, 1.0, "2026-02-03"),
    }


def test_a_mended_row_that_does_not_fit_is_told(project_at, run_once, export, replayed):
    root = project_at(CSV, files={"in/a.csv": "id;amount;day\n2;-5;02.02.2026\n"})
    run_once(root)
    file = export(root, lambda one: one["raw"].replace("-5.0", '"five"'))
    result = replayed(root, corrected=file)
    assert statuses(result) == {"failed": 1}
    assert [problem.code for problem in result.problems] == ["DEADLETTER006"]
    file = export(root, lambda one: one["raw"].replace("-5.0", ""))
    result = replayed(root, corrected=file)
    assert [(problem.code, problem.severity) for problem in result.problems] == [("DEADLETTER005", "error")]
    file = export(root, lambda one: one["raw"].replace("-5.0", "5"))
    assert statuses(replayed(root, corrected=file)) == {"sent": 1}


def test_parquet_rows_go_back_as_parquet_into_their_folder(project_at, run_once, spark, export, replayed):
    root = project_at(
        JSON.replace("type: json", "type: parquet").replace("    on_bad_record: dead_letter\n", ""),
    )
    frame(spark, [(1, -1), (2, 2), (3, -3)], "id BIGINT, amount BIGINT").write.parquet(str(root / "in"))
    run_once(root)
    file = export(root, lambda one: one["raw"].replace("-", ""))
    assert statuses(replayed(root, corrected=file)) == {"sent": 2}
    assert run_once(root).ok
    assert ids(spark, root / "out") == [1, 2, 3]


def test_a_letter_of_a_step_or_sink_without_a_record_is_told(project_at, run_once, spark, export, replayed):
    root = project_at(
        """
        pipeline: shop
        sources: {orders: {type: files, path: in, format: {type: json, schema: "id BIGINT, amount BIGINT"}}}
        steps:
          doubled:
            sql: SELECT id, amount * 2 AS twice FROM orders
            expect: {positive: {that: twice > 0, otherwise: dead_letter}}
        sinks: {out: {of: doubled, type: files, path: out, format: parquet}}
        """,
        files={"in/a.json": '{"id": 1, "amount": -1}\n{"id": 2, "amount": 2}\n'},
    )
    run_once(root)
    result = replayed(root)
    assert statuses(result) == {"cannot be sent": 1}
    assert [(problem.code, problem.severity) for problem in result.problems] == [("DEADLETTER005", "error")]
    file = export(root, lambda one: '{"id": 1, "amount": 1}')
    assert statuses(replayed(root, corrected=file)) == {"sent": 1}
    run_once(root)
    assert ids(spark, root / "out") == [1, 2]


def test_after_a_crash_what_has_arrived_is_not_sent_again(project_at, run_once, shown, replayed):
    root = project_at(JSON, files={"in/a.json": '{"id": 1, "amount": -1}\n{"id": 2, "amount": -1}\n'})
    run_once(root)
    first, second = (one.letter for one in shown(root).letters)
    notes = ReplayNotes(LocalStorage(), str(root / "storage"), "shop")
    notes.begin([first.id], "orders", file=str(root / "in/penstock-replay-1.json"))
    notes.begin([second.id], "orders", file=str(root / "in/penstock-replay-2.json"))
    place(root / "in/penstock-replay-1.json", (first.raw or b"").decode())
    assert statuses(replayed(root, dry_run=True)) == {"sent before": 1, "would be sent": 1}
    assert statuses(replayed(root)) == {"sent before": 1, "sent": 1}


class Crash(BaseException):
    """The process ends here."""


def test_after_a_crash_a_row_that_did_not_fit_is_not_taken_for_sent(
    project_at, run_once, export, replayed, monkeypatch
):
    root = project_at(CSV, files={"in/a.csv": "id;amount;day\n1;-5;01.02.2026\n2;-5;02.02.2026\n"})
    run_once(root)
    file = export(root, lambda one: one["raw"].replace("-5.0", "5" if '"id":1' in one["raw"] else '"five"'))

    def crashes(point: str) -> None:
        raise Crash(point)

    with monkeypatch.context() as patched:
        patched.setattr("penstock.dead_letters.replay.sending.reached", crashes)
        with pytest.raises(Crash):
            replayed(root, corrected=file)
    assert statuses(replayed(root, corrected=file)) == {"sent before": 1, "failed": 1}


@pytest.mark.covers("late.dropped")
def test_what_a_watermark_refuses_is_told(project_at, run_once, replayed):
    root = project_at(
        """
        pipeline: counts
        sources:
          orders:
            type: files
            path: in
            format: {type: json, schema: "id BIGINT, at TIMESTAMP"}
            on_bad_record: dead_letter
            expect: {known: {that: id > 0, otherwise: dead_letter}}
            watermark: {column: at, delay: 1 minute}
        steps:
          each: {sql: "SELECT window.start AS minute, count(*) AS n FROM orders GROUP BY window(at, '1 minute')"}
        sinks: {out: {of: each, type: files, path: out, format: parquet}}
        """,
        files={
            "in/a.json": '{"id": 1, "at": "2026-01-01T12:00:00Z"}\n{"id": -1, "at": "2026-01-01T10:00:00Z"}\n'
            '{"id": -1, "at": "2026-01-01T13:00:00Z"}\n',
        },
    )
    assert run_once(root).ok
    result = replayed(root, dry_run=True)
    late = [
        (one.query, f"{one.watermark:%H:%M}", f"{one.event_time:%H:%M}") for o in result.outcomes for one in o.late_for
    ]
    assert late == [("each", "11:59", "10:00")]
    assert statuses(replayed(root, skip_late=True)) == {"late": 1, "sent": 1}


def test_delta_as_the_place(project_at, run_once, listed, replayed, spark):
    root = project_at(
        JSON + "dead_letters: {type: delta, path: aside}\n",
        files={"in/a.json": '{"id": 1, "amount": -1}\n{"id": 2, "amount"\n'},
    )
    assert run_once(root).ok
    assert {(group.check, group.letters) for group in listed(root).groups} == {("positive", 1), ("decoded", 1)}
    assert statuses(replayed(root, LetterFilter(checks=("decoded",)))) == {"sent": 1}


KAFKA = """
pipeline: shop
sources:
  orders:
    type: kafka
    servers: {servers}
    topics: [{topic}]
    starting: earliest
    format: {{type: json, schema: "id BIGINT, amount BIGINT"}}
    on_bad_record: dead_letter
functions:
  risk: {{python: scores:risk, returns: BIGINT}}
steps:
  scored: {{sql: "SELECT id, risk(amount) AS risk FROM orders"}}
sinks:
  out: {{of: scored, type: files, path: out, format: parquet}}
"""
RISK = """
def risk(amount):
    if amount == 13:
        raise ValueError("unlucky")
    return amount

def mended_risk(amount):
    return amount
"""


@services
@pytest.mark.parametrize("at_kafka", [False, True])
def test_full_circle_of_kafka(at_kafka, project_at, run_once, spark, shown, export, replayed, kafka, topic):
    orders, aside = topic(partitions=2), topic()
    place_ = f"dead_letters: {{type: kafka, servers: '{kafka.servers}', topic: {aside}}}\n" if at_kafka else ""
    root = project_at(KAFKA.format(servers=kafka.servers, topic=orders) + place_, files={"scores.py": RISK})
    produce(kafka.servers, orders, ['{"id": 1, "amount": 1}'], partition=0)
    produce(kafka.servers, orders, [b"\xff\x00", None], key="k", headers={"h": b"\xfe"}, partition=1)
    produce(kafka.servers, orders, ['{"id": 4, "amount": 13}'], key="13", partition=1)
    assert run_once(root).ok
    assert ids(spark, root / "out") == [1]

    letters = {one.letter.offset: one.letter for one in shown(root).letters}
    assert [(letters[offset].node, letters[offset].raw) for offset in range(3)] == [
        ("orders", b"\xff\x00"),
        ("orders", None),
        ("scored", b'{"id": 4, "amount": 13}'),
    ]
    assert (letters[0].topic, letters[0].partition, letters[0].key) == (orders, 1, b"k")
    assert letters[0].headers == (("h", b"\xfe"),)
    assert letters[0].to_json()["raw_base64"] == "/wA="

    mends = {0: '{"id": 2, "amount": 2}', 1: '{"id": 3, "amount": 3}'}
    file = export(root, lambda one: mends.get(one["offset"], one.get("raw")))
    assert statuses(replayed(root, corrected=file)) == {"sent": 2, "unchanged": 1}
    assert statuses(replayed(root, corrected=file)) == {"sent before": 2, "unchanged": 1}
    text = (root / "pipelines/p0.yaml").read_text()
    place(root / "pipelines/p0.yaml", text.replace("scores:risk", "scores:mended_risk"))  # the record stays as it was
    assert statuses(replayed(root)) == {"sent before": 2, "sent": 1}
    back = consume(kafka.servers, orders)[4:]
    assert [(one.partition(), one.key(), dict(one.headers()).get("h")) for one in back] == [
        (1, b"k", b"\xfe"),
        (1, b"k", b"\xfe"),
        (1, b"13", None),
    ]
    assert {dict(one.headers())[HEADER].decode() for one in back} == {letter.id for letter in letters.values()}
    assert run_once(root).ok
    assert ids(spark, root / "out") == [1, 2, 3, 4]


@services
def test_after_a_crash_the_topic_tells_what_has_arrived(project_at, run_once, shown, replayed, kafka, topic):
    orders = topic()
    root = project_at(KAFKA.format(servers=kafka.servers, topic=orders), files={"scores.py": RISK})
    produce(kafka.servers, orders, ["{", "}", "["])
    run_once(root)
    letters = sorted((one.letter for one in shown(root).letters), key=lambda letter: letter.offset)
    notes = ReplayNotes(LocalStorage(), str(root / "storage"), "shop")
    notes.begin([letter.id for letter in letters], "orders", topic=orders, ends={"0": 3})
    produce(kafka.servers, orders, ["{"], headers={HEADER: letters[0].id})
    assert statuses(replayed(root)) == {"sent before": 1, "sent": 2}
    assert [one.value() for one in consume(kafka.servers, orders)[3:]] == [b"{", b"}", b"["]


@services
def test_a_topic_that_is_gone_is_told(project_at, run_once, replayed, kafka, topic):
    from confluent_kafka.admin import AdminClient

    orders = topic()
    root = project_at(KAFKA.format(servers=kafka.servers, topic=orders), files={"scores.py": RISK})
    produce(kafka.servers, orders, ["{"])
    run_once(root)
    admin = AdminClient({"bootstrap.servers": kafka.servers})
    admin.delete_topics([orders])[orders].result(30)
    result = replayed(root)
    assert statuses(result) == {"failed": 1}
    assert [problem.code for problem in result.problems] == ["KAFKA003"]
