"""Requests to a real server on loopback: keys, retries, refusals, bounds."""

from __future__ import annotations

import json
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from penstock.notation.references import MASK
from penstock.problems import Fault
from penstock.sinks.batch import Batch
from penstock.sinks.http import Http
from tests.actions.test_run import checkpoint_of, forget_last_commit
from tests.conftest import place
from tests.frames import frame
from tests.http_service import Reset, Seen, Service, closed_port, serving

pytestmark = pytest.mark.spark


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as service:
        yield service


@dataclass
class Aside:
    """What a sink has put aside."""

    rows: list[tuple[bytes, str]] = field(default_factory=list)

    def __call__(self, refused) -> None:
        assert refused.schema.simpleString() == "struct<raw:binary,reason:string>"
        self.rows += [(bytes(row.raw), row.reason) for row in refused.collect()]


@pytest.fixture
def aside() -> Aside:
    return Aside()


@pytest.fixture
def write(aside) -> Callable[..., None]:
    """Writes a DataFrame as one batch, as a query does: prepared before, numbered."""

    def write(sink: Http, rows, number: int = 0) -> None:
        sink.judge(rows)
        sink.write(rows, Batch("p", "q", "out", number, put_aside=aside))

    return write


@pytest.fixture
def numbers(spark) -> Callable[..., Any]:
    return lambda count, partitions=2: spark.range(0, count, 1, partitions)


def failing_first(times: int, status: int, headers: dict[str, str] | None = None) -> Callable[[Seen], Any]:
    """Answers so to the first attempts of every record, and then takes it."""
    counts: Counter[str] = Counter()
    lock = threading.Lock()

    def answer(seen: Seen) -> tuple[int, dict[str, str], str]:
        with lock:
            counts[seen.key] += 1
            return (200, {}, "") if counts[seen.key] > times else (status, headers or {}, "not now")

    return answer


# What is sent


def test_each_row_is_sent_once_as_json_under_a_key_of_its_own_that_a_replay_repeats(service, write, numbers):
    sink = Http(url=service.url + "/orders")
    rows = numbers(50).selectExpr("id", "CASE WHEN id = 7 THEN 'ä\"\\n' END AS name")
    write(sink, rows)
    assert service.ids == list(range(50))
    first = {seen.json["id"]: seen.key for seen in service.seen}
    assert len(set(first.values())) == 50
    one = next(seen for seen in service.seen if seen.json["id"] == 7)
    assert (one.method, one.path, one.json["name"]) == ("POST", "/orders", 'ä"\n')
    assert one.headers["content-type"] == "application/json"
    assert next(seen.json for seen in service.seen if seen.json["id"] == 8) == {"id": 8}
    service.seen.clear()
    write(sink, rows.repartition(5), number=9)
    assert {seen.json["id"]: seen.key for seen in service.seen} == first


def test_the_key_is_made_of_the_named_columns_and_not_of_the_rest(service, write, spark):
    sink = Http(url=service.url, idempotency_key=["id"], idempotency_header="X-Request-Id")
    for amount in (1, 2):
        write(sink, spark.sql(f"SELECT 5 AS id, {amount} AS amount"))
    assert len({seen.headers["x-request-id"] for seen in service.seen}) == 1
    write(sink, spark.sql("SELECT CAST(NULL AS INT) AS id, x AS amount FROM VALUES (1), (2) AS t(x)"))
    assert len({seen.headers["x-request-id"] for seen in service.seen}) == 3


def test_null_fields_are_sent_on_demand_and_nested_values_as_json(service, write, spark):
    rows = spark.sql("SELECT 1 AS id, CAST(NULL AS STRING) AS name, named_struct('a', array(1, 2)) AS inner")
    write(Http(url=service.url, ignore_null_fields=False), rows)
    assert service.seen[0].json == {"id": 1, "name": None, "inner": {"a": [1, 2]}}


def test_several_rows_go_in_one_request_and_a_replay_makes_the_same_requests(service, write, numbers):
    sink = Http(url=service.url, rows_per_request=10, concurrency=3)
    for _ in range(2):
        write(sink, numbers(25, partitions=1))
    sizes = [len(seen.json) for seen in service.seen]
    assert sorted(sizes) == [5, 5, 10, 10, 10, 10]
    assert sorted(row["id"] for seen in service.seen for row in seen.json) == sorted([*range(25)] * 2)
    assert sorted(Counter(seen.key for seen in service.seen).values()) == [2, 2, 2]


def test_values_in_the_url_are_quoted_and_cannot_leave_their_place(service, write, spark, aside):
    values = ["a/b", "../up", "ü ?&#", "%41", "{id}", "", "..", None]
    rows = frame(spark, [(value,) for value in values], "id STRING")
    write(Http(url=service.url + "/x/{id}/y?from={id}", method="PUT"), rows)
    paths = {seen.json["id"]: seen.path for seen in service.seen}
    assert paths["a/b"] == "/x/a%2Fb/y?from=a%2Fb"
    assert paths["../up"] == "/x/..%2Fup/y?from=..%2Fup"
    assert paths["ü ?&#"] == "/x/%C3%BC%20%3F%26%23/y?from=%C3%BC%20%3F%26%23"
    assert paths["%41"] == "/x/%2541/y?from=%2541"
    assert paths["{id}"] == "/x/%7Bid%7D/y?from=%7Bid%7D"
    assert len(paths) == 5
    assert sorted(reason for _, reason in aside.rows) == [
        "`id` is '', and the URL needs it",
        "`id` is '..', and the URL needs it",
        "`id` is NULL, and the URL needs it",
    ]


def test_a_delete_has_no_body_and_a_column_can_be_the_body(service, write, spark, aside):
    rows = spark.sql("SELECT 1 AS id, '<a/>' AS xml UNION ALL SELECT 2, NULL")
    write(Http(url=service.url, endpoint="/o/{id}", method="DELETE"), rows)
    assert sorted((seen.method, seen.path, seen.body) for seen in service.seen) == [
        ("DELETE", "/o/1", b""),
        ("DELETE", "/o/2", b""),
    ]
    service.seen.clear()
    write(Http(url=service.url, body="xml", content_type="application/xml"), rows)
    assert [(seen.body, seen.headers["content-type"]) for seen in service.seen] == [(b"<a/>", "application/xml")]
    assert aside.rows == [(b'{"id":2,"xml":null}', "the body is NULL")]


def test_headers_and_logins_are_sent(service, write, numbers, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # the environment's proxies are not used
    write(Http(url=service.url, token="t0ken", headers={"X-Shop": "one"}), numbers(1))
    write(Http(url=service.url, username="ann", password="pass:word"), numbers(1))
    first, second = service.seen
    assert (first.headers["authorization"], first.headers["x-shop"]) == ("Bearer t0ken", "one")
    assert second.headers["authorization"] == "Basic YW5uOnBhc3M6d29yZA=="


# What comes back


def test_a_busy_server_is_asked_again_after_the_time_it_names(service, write, numbers, aside):
    service.answer = failing_first(1, 429, {"Retry-After": "1"})
    began = time.monotonic()
    write(Http(url=service.url), numbers(4))
    assert time.monotonic() - began >= 1
    assert service.ids == sorted([*range(4)] * 2)
    assert len({seen.key for seen in service.seen}) == 4
    assert aside.rows == []


@pytest.mark.parametrize("status", [408, 425, 500, 503])
def test_a_broken_server_is_asked_again(service, write, numbers, status):
    service.answer = failing_first(2, status)
    write(Http(url=service.url), numbers(3, 1))
    assert service.ids == sorted([*range(3)] * 3)


def test_a_connection_that_is_reset_and_an_answer_that_is_late_are_tried_again(service, write, numbers):
    counts: Counter[str] = Counter()

    def answer(seen: Seen) -> tuple[int, dict[str, str], str]:
        with service.lock:
            counts[seen.key] += 1
            attempt = counts[seen.key]
        if attempt == 1:
            raise Reset
        if attempt == 2:
            time.sleep(0.8)
        return 200, {}, ""

    service.answer = answer
    write(Http(url=service.url, timeout="300 ms"), numbers(3))
    assert service.ids == sorted([*range(3)] * 3)


def test_what_is_refused_for_good_is_put_aside_with_the_reason_and_the_rest_goes_on(service, write, numbers, aside):
    def answer(seen: Seen) -> tuple[int, dict[str, str], str]:
        return (422, {}, "no\n such  " + "x" * 300) if seen.json["id"] % 10 == 0 else (201, {}, "made")

    service.answer = answer
    write(Http(url=service.url), numbers(30))
    assert service.ids == list(range(30))
    assert sorted(json.loads(raw)["id"] for raw, _ in aside.rows) == [0, 10, 20]
    (reason,) = {reason for _, reason in aside.rows}
    assert reason.startswith("HTTP 422: no such xxx")
    assert len(reason) == len("HTTP 422: ") + 200


def test_a_refused_request_of_several_rows_puts_aside_each_of_them(service, write, numbers, aside):
    service.answer = lambda seen: (413, {}, "")
    write(Http(url=service.url, rows_per_request=4), numbers(6, 1))
    assert len(service.seen) == 2
    assert sorted((json.loads(raw)["id"], reason) for raw, reason in aside.rows) == [(n, "HTTP 413") for n in range(6)]


def test_a_task_that_is_retried_loses_no_refusal(service, write, spark, numbers, aside):
    from pyspark import TaskContext

    def fails_once(batches):
        yield from batches
        if TaskContext.get().attemptNumber() == 0 and TaskContext.get().partitionId() == 1:
            raise RuntimeError("the machine is lost")

    service.answer = lambda seen: (422, {}, "no")
    write(Http(url=service.url), numbers(10).mapInArrow(fails_once, "id BIGINT"))
    assert sorted(json.loads(raw)["id"] for raw, _ in aside.rows) == list(range(10))
    assert len({seen.key for seen in service.seen}) == 10


@pytest.mark.parametrize("status", [401, 403, 404, 405])
def test_an_answer_about_the_pipeline_fails_the_batch_at_once(service, write, numbers, aside, status):
    service.answer = lambda seen: (status, {}, "who is t0ps3cret?")
    with pytest.raises(Fault) as raised:
        write(Http(url=service.url + "/in?api_key=hidden77", token="t0ps3cret", concurrency=1), numbers(500))
    fault = raised.value
    assert fault.code == "HTTP003"
    assert fault.message == (
        f"POST {service.url}/in is turned away: HTTP {status}: who is {MASK}?; 0 records of the batch got through"
    )
    assert len(service.seen) <= 2
    assert aside.rows == []


def test_which_answers_stop_is_for_the_user_to_say(service, write, numbers, aside):
    service.answer = lambda seen: (404, {}, "")
    write(Http(url=service.url, stop_on=[]), numbers(2))
    write(Http(url=service.url + "/{id}"), numbers(2))
    assert [reason for _, reason in aside.rows] == ["HTTP 404"] * 4


def test_a_redirect_is_not_followed(service, write, numbers):
    service.answer = lambda seen: (302, {"Location": f"{service.url}/login?next=secret"}, "")
    with pytest.raises(Fault, match=r"turned away: HTTP 302: it redirects to http://127.0.0.1:\d+/login;") as raised:
        write(Http(url=service.url, concurrency=1), numbers(1))
    assert "secret" not in raised.value.message
    assert len(service.seen) == 1


def test_a_certificate_must_be_vouched_for(service, write, numbers, tmp_path):
    key, certificate = tmp_path / "key.pem", tmp_path / "own.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=loopback",
               "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    service.server.socket = context.wrap_socket(service.server.socket, server_side=True)
    url = service.url.replace("http:", "https:")
    with pytest.raises(Fault, match="CERTIFICATE_VERIFY_FAILED") as raised:
        write(Http(url=url), numbers(1))
    assert raised.value.code == "HTTP003"
    assert service.seen == []
    write(Http(url=url, ca_file=str(certificate)), numbers(3))
    assert service.ids == [0, 1, 2]
    with pytest.raises(Fault, match="cannot be read as authorities"):
        Http(url=url, ca_file=str(tmp_path / "none.pem")).probe()


# When nothing helps


def test_when_the_attempts_are_used_up_the_batch_fails_with_what_was_said(service, write, numbers, aside):
    service.answer = lambda seen: (503, {}, "down for repair") if seen.json["id"] == 3 else (200, {}, "")
    with pytest.raises(Fault) as raised:
        write(Http(url=service.url, max_attempts=2, concurrency=1), numbers(4, 1))
    assert raised.value.code == "HTTP002"
    assert raised.value.message == (
        f"POST {service.url} does not get through: HTTP 503: down for repair (tried 2 times);"
        " 3 records of the batch got through"
    )
    assert aside.rows == []


def test_a_dead_server_fails_the_batch_within_the_time_however_many_partitions_there_are(write, numbers):
    sink = Http(url=f"http://127.0.0.1:{closed_port()}", retry_for="2 seconds", max_attempts=50)
    began = time.monotonic()
    with pytest.raises(Fault) as raised:
        write(sink, numbers(60, partitions=60))
    assert raised.value.code == "HTTP002"
    assert "Connection refused" in raised.value.message
    assert time.monotonic() - began < 50  # 60 partitions on 2 cores, each alone, would take 60 s


def test_a_server_that_asks_for_more_time_than_there_is_fails_the_batch_at_once(service, write, numbers):
    service.answer = lambda seen: (429, {"Retry-After": "3600"}, "")
    began = time.monotonic()
    with pytest.raises(Fault, match=r"HTTP 429 \(tried 1 time\)"):
        write(Http(url=service.url), numbers(1))
    assert time.monotonic() - began < 300  # the server asks for an hour


def test_no_more_requests_are_under_way_than_allowed(service, write, numbers):
    def slow(seen: Seen) -> tuple[int, dict[str, str], str]:
        time.sleep(0.02)
        return 200, {}, ""

    service.answer = slow
    write(Http(url=service.url, concurrency=3), numbers(60, partitions=1))
    assert service.most_at_once == 3
    service.most_at_once = 0
    write(Http(url=service.url, concurrency=1), numbers(10, partitions=1))
    assert service.most_at_once == 1


# Before the start


def test_a_probe_connects_and_sends_nothing(service):
    Http(url=service.url).probe()
    assert service.seen == []
    with pytest.raises(Fault, match="the connection `broker` gives no URL"):
        Http(connection="broker").probe()
    for url in (f"http://127.0.0.1:{closed_port()}", "https://no-such-host.invalid/x"):
        with pytest.raises(Fault, match="cannot be reached") as raised:
            Http(url=url).probe()
        assert raised.value.code == "HTTP001"
    with pytest.raises(Fault, match="cannot be reached"):
        Http(url=service.url, proxy=f"http://127.0.0.1:{closed_port()}").probe()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"endpoint": "/{ident}"}, "the rows have no column `ident`"),
        ({"idempotency_key": ["ID", "nmae"]}, "no column `nmae` — did you mean `name`?"),
        ({"body": "text"}, "the rows have no column `text`"),
        ({"body": "id"}, "the column `id` is neither STRING nor BINARY"),
    ],
)
def test_a_column_that_is_not_there_is_told_before_the_start(spark, given, said):
    with pytest.raises(Fault) as raised:
        Http(url="http://127.0.0.1", **given).judge(spark.sql("SELECT 1 AS id, 'a' AS name"))
    assert raised.value.code == "HTTP004"
    assert said in raised.value.message


# In a pipeline

PIPELINE = """
    pipeline: hooks
    latency: low
    sources: {orders: {type: files, path: in, format: {type: json, schema: 'id BIGINT, name STRING'}}}
    sinks: {out: {of: orders, type: http, connection: shop, endpoint: 'orders/{id}', max_attempts: 2, stop_on: [401]}}
"""
SETTINGS = """
name: test
connections: {shop: {type: http, url: '${SHOP_URL}', token: '${SHOP_TOKEN}'}}
restarts: {most: 1, first_delay: 100 milliseconds}
"""


@pytest.fixture
def shop(service, project_at, monkeypatch):
    monkeypatch.setenv("SHOP_URL", service.url + "/v1")
    monkeypatch.setenv("SHOP_TOKEN", "t0ps3cret")
    return project_at(PIPELINE, files={"in/1.json": '{"id": 1}\n{"id": 2}\n'}, settings=SETTINGS)


def test_a_pipeline_sends_through_a_connection_and_a_batch_that_was_done_is_not_sent_again(service, shop, run_once):
    assert run_once(shop).ok
    assert sorted((seen.path, seen.headers["authorization"]) for seen in service.seen) == [
        ("/v1/orders/1", "Bearer t0ps3cret"),
        ("/v1/orders/2", "Bearer t0ps3cret"),
    ]
    forget_last_commit(checkpoint_of(shop, "hooks", "orders"))
    place(shop / "in/2.json", '{"id": 3}\n')
    assert run_once(shop).ok
    assert service.ids == [1, 2, 3]


def test_a_batch_that_failed_is_sent_again_under_the_same_keys(service, shop, run_once):
    service.answer = lambda seen: (503, {}, "t0ps3cret?") if seen.json["id"] == 2 else (200, {}, "")
    failed = run_once(shop)
    (problem,) = failed.problems
    assert problem.code == "HTTP002"
    assert problem.where is not None
    assert "t0ps3cret" not in str(problem)
    service.answer = lambda seen: (200, {}, "")
    assert run_once(shop).ok
    keys = {seen.json["id"]: {other.key for other in service.seen if other.json == seen.json} for seen in service.seen}
    assert sorted(keys) == [1, 2]
    assert [len(of_one) for of_one in keys.values()] == [1, 1]


def test_a_server_that_is_not_there_is_told_before_anything_is_sent(shop, run_once, monkeypatch):
    monkeypatch.setenv("SHOP_URL", f"http://127.0.0.1:{closed_port()}")
    with pytest.raises(Exception, match="cannot be reached") as raised:
        assert run_once(shop).problems == ()
    assert "HTTP001" in str(raised.value)
