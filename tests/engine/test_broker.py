from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.engine.broker import (
    CONNECTOR,
    LARGEST_MESSAGE_BYTES,
    Broker,
    Credentials,
    Ports,
    properties_text,
    server_properties,
)
from penstock.engine.connectors import WITHOUT_SPARK, available, locked_jars
from penstock.problems import UserError
from tests.services import consume, create_topic, produce

services = pytest.mark.services

STARTS_AND_HANGS = """
import sys, time
from pathlib import Path
from penstock.engine.broker import Broker
broker = Broker(Path(sys.argv[1]))
broker.start()
print(broker.pid, flush=True)
time.sleep(600)
"""


def texts(servers: str, topic: str) -> list[str]:
    return [message.value().decode() for message in consume(servers, topic)]


def with_password(servers: str, password: str) -> AdminClient:
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "log_level": 0}
    return AdminClient(
        {"bootstrap.servers": servers, "sasl.username": "penstock", "sasl.password": password, **settings}
    )


def test_the_broker_is_locked_and_is_no_connector_of_spark() -> None:
    jars = locked_jars(CONNECTOR, WITHOUT_SPARK)
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert len({jar.file_name for jar in jars}) == len(jars)
    assert "kafka_2.13" in {jar.coordinate.artifact for jar in jars}
    assert CONNECTOR not in available("4.1")
    with pytest.raises(UserError, match="ENGINE003 there is no connector"):
        locked_jars(CONNECTOR, "4.1")


@pytest.mark.parametrize("credentials", [None, Credentials("ann", "pw")])
def test_every_listener_is_on_loopback(credentials: Credentials | None) -> None:
    settings = server_properties(Ports(1, 2, 3), credentials)
    listeners = settings["listeners"].split(",")
    assert len(listeners) == (2 if credentials is None else 3)
    assert all(re.fullmatch(r"[A-Z]+://127\.0\.0\.1:\d", listener) for listener in listeners)


def test_odd_values_stay_one_line_of_properties() -> None:
    assert properties_text({"a": "x\\y\nz", "b": "é"}) == "a=x\\\\y\\nz\nb=\\u00e9\n"


def test_without_java_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="ENGINE001"):
        Broker(tmp_path, environ={"PATH": ""}).start()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"DEV003 .*file/below"):
        Broker(tmp_path / "file" / "below").start()


@services
def test_what_is_written_is_read(kafka, topic) -> None:
    name = topic(partitions=2)
    produce(kafka.servers, name, ["a", "b"], key="k", headers={"h": b"1"}, partition=1)
    produce(kafka.servers, name, [None, b"\xff"], partition=0)
    assert [(one.partition(), one.key(), one.value(), one.headers()) for one in consume(kafka.servers, name)] == [
        (0, None, None, None),
        (0, None, b"\xff", None),
        (1, b"k", b"a", [("h", b"1")]),
        (1, b"k", b"b", [("h", b"1")]),
    ]


@services
def test_a_large_message_fits(kafka, topic) -> None:
    name = topic()
    produce(kafka.servers, name, [b"x" * (LARGEST_MESSAGE_BYTES - 1_000_000)])
    assert len(consume(kafka.servers, name)[0].value()) == LARGEST_MESSAGE_BYTES - 1_000_000


@services
def test_it_makes_no_topic_by_itself_when_told_so(kafka) -> None:
    with pytest.raises(KafkaException):
        produce(kafka.servers, "nobody-made-me", ["a"])


@services
def test_a_wrong_password_is_refused(kafka, topic) -> None:
    name = topic()
    assert name in with_password(kafka.sasl_servers, "secret").list_topics(timeout=30).topics
    with pytest.raises(KafkaException):
        with_password(kafka.sasl_servers, "wrong").list_topics(timeout=3)


@services
def test_a_taken_port_and_a_used_folder_are_told(kafka, tmp_path) -> None:
    port = int(kafka.servers.partition(":")[2])
    with pytest.raises(UserError, match=f"DEV001 port {port} "):
        Broker(tmp_path, port).start()
    with pytest.raises(UserError, match="DEV002"):
        Broker(kafka.folder).start()


@services
def test_it_survives_a_crash_and_a_stop_with_its_data(tmp_path) -> None:
    with Broker(tmp_path, auto_create_topics=False) as broker:
        servers = broker.servers
        create_topic(servers, "kept")
        produce(servers, "kept", ["a"])
        broker.kill()
        assert not broker.running
        broker.start()
        produce(servers, "kept", ["b"])
        broker.stop()
        assert broker.pid is None
        broker.start()
        assert (broker.servers, texts(servers, "kept")) == (servers, ["a", "b"])
    assert not broker.running


@services
@pytest.mark.parametrize("formatted", [False, True], ids=["while it is formatted", "while it starts"])
def test_a_broker_that_cannot_start_shows_its_log(formatted, tmp_path) -> None:
    broker = Broker(tmp_path, properties={"message.max.bytes": "many"})
    if formatted:
        (tmp_path / "data").mkdir()
        (tmp_path / "data/meta.properties").touch()
    with pytest.raises(UserError, match=r"(?s)DEV004 .*message\.max\.bytes"):
        broker.start()
    assert broker.pid is None


@services
def test_it_ends_with_the_process_that_started_it(tmp_path) -> None:
    code = [sys.executable, "-c", STARTS_AND_HANGS, tmp_path]
    with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 300
    while psutil.pid_exists(pid):
        assert time.monotonic() < deadline
        time.sleep(0.05)
