"""The address of a Kafka cluster: what Spark and confluent-kafka get of it, and what is refused."""

from __future__ import annotations

import time

import pytest
from pydantic import ValidationError

from penstock.connections.kafka import Kafka
from penstock.connections.kafka_cluster import Cluster
from penstock.connections.kafka_options import ALLOWED, refusal
from penstock.problems import Fault
from penstock.spec import Option

REFUSED: dict[str, str] = {
    "sasl.jaas.config": "login module",
    "kafka.sasl.jaas.config": "login module",
    "sasl.login.class": "login module",
    "sasl.login.callback.handler.class": "login module",
    "sasl.client.callback.handler.class": "class by its name",
    "interceptor.classes": "class by its name",
    "metric.reporters": "class by its name",
    "security.providers": "class by its name",
    "ssl.engine.factory.class": "class by its name",
    "partitioner.class": "class by its name",
    "partition.assignment.strategy": "no option",
    "key.deserializer": "`key_format`",
    "value.serializer": "`format`",
    "group.id": "`group_id_prefix`",
    "auto.offset.reset": "`starting`",
    "enable.auto.commit": "checkpoint",
    "transactional.id": "without transactions",
    "bootstrap.servers": "`servers`",
    "linger.ms": "`linger`",
    "kafka.fetch.min.bytes": "write `fetch.min.bytes`",
    "fetch.min.byte": "did you mean `fetch.min.bytes`",
}

WITHIN = 45
"""In seconds: the client's own limit is a minute."""


@pytest.mark.parametrize("option", REFUSED)
def test_an_option_that_is_not_on_the_list_is_refused(option: str) -> None:
    with pytest.raises(ValidationError, match=r"kafka_options|own") as raised:
        Kafka(servers="k:9092", kafka_options={option: "com.sun.security.auth.module.JndiLoginModule required;"})
    assert REFUSED[option] in str(raised.value)
    assert "JndiLoginModule" not in raised.value.errors()[0]["msg"]


def test_every_option_on_the_list_passes() -> None:
    assert refusal(ALLOWED) is None
    given: dict[str, Option] = {"fetch.min.bytes": 1, "check.crcs": False}
    options = Kafka(servers="k:9092", kafka_options=given).spark_options()
    assert options == {
        "kafka.bootstrap.servers": "k:9092",
        "kafka.fetch.min.bytes": "1",
        "kafka.check.crcs": "false",
    }


def test_a_password_goes_over_a_protected_wire_unless_told_otherwise() -> None:
    kafka = Kafka(servers="k:9092", username="me", password="s3", request_timeout="5 seconds")
    options = kafka.spark_options()
    assert options["kafka.security.protocol"] == "SASL_SSL"
    assert options["kafka.sasl.mechanism"] == "PLAIN"
    assert options["kafka.request.timeout.ms"] == "5000"
    assert kafka.client_config() == {
        "bootstrap.servers": "k:9092",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "me",
        "sasl.password": "s3",
    }
    plain = Kafka(servers="k:9092", username="me", security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-512")
    assert plain.spark_options()["kafka.security.protocol"] == "SASL_PLAINTEXT"
    assert "scram.ScramLoginModule required" in plain.spark_options()["kafka.sasl.jaas.config"]


def test_a_login_cannot_break_out_of_its_quotes() -> None:
    jaas = Kafka(servers="k", username='a" x="', password='b";\n com.evil required;').spark_options()
    assert jaas["kafka.sasl.jaas.config"].endswith(
        r'required username="a\" x=\"" password="b\";\n com.evil required;";'
    )


def test_stores_and_certificates_are_named_for_both_clients() -> None:
    pem = Kafka(
        servers="k:9093",
        ssl_truststore_location="/ca.pem",
        ssl_truststore_type="PEM",
        ssl_keystore_certificates="CHAIN",
        ssl_keystore_key="KEY",
        ssl_key_password="pw",
        ssl_verify_host=False,
    )
    assert pem.spark_options() == {
        "kafka.bootstrap.servers": "k:9093",
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.location": "/ca.pem",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "CHAIN",
        "kafka.ssl.keystore.key": "KEY",
        "kafka.ssl.key.password": "pw",
        "kafka.ssl.endpoint.identification.algorithm": "",
    }
    config = pem.client_config()
    assert config["ssl.ca.location"] == "/ca.pem"
    assert (config["ssl.certificate.pem"], config["ssl.key.pem"]) == ("CHAIN", "KEY")
    assert config["ssl.endpoint.identification.algorithm"] == "none"
    assert not pem.is_for_java_alone
    store = Kafka(servers="k", ssl_keystore_location="/k.p12", ssl_keystore_type="PKCS12", ssl_keystore_password="pw")
    assert store.client_config()["ssl.keystore.location"] == "/k.p12"
    assert not store.is_for_java_alone
    assert Kafka(servers="k", ssl_truststore_location="/t.jks", ssl_truststore_password="pw").is_for_java_alone


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"username": "me", "security_protocol": "PLAINTEXT"}, "write `SASL_PLAINTEXT`"),
        ({"username": "me", "security_protocol": "SSL"}, "write `SASL_SSL`"),
        ({"password": "secret-word"}, "need a `username`"),
        ({"sasl_mechanism": "PLAIN"}, "need a `username`"),
    ],
)
def test_a_login_that_nobody_would_use_is_refused(keys: dict[str, str], said: str) -> None:
    with pytest.raises(ValidationError, match=said) as raised:
        Kafka(servers="k:9092", **keys)
    assert "secret-word" not in raised.value.errors()[0]["msg"]


def test_a_cluster_that_is_not_there_is_told_within_seconds(capfd) -> None:
    began = time.monotonic()
    with pytest.raises(Fault) as raised:
        Cluster(Kafka(servers="127.0.0.1:1")).partitions()
    assert time.monotonic() - began < WITHIN
    assert raised.value.code == "KAFKA001"
    assert "127.0.0.1:1" in raised.value.message
    with pytest.raises(Fault, match="cannot be reached"):
        Cluster(Kafka(servers="no-such-host.invalid:9092")).partitions()
    with pytest.raises(Fault, match="Connection refused"):
        Cluster(Kafka(servers="127.0.0.1:1", ssl_truststore_location="/t.jks")).reach()
    assert capfd.readouterr() == ("", "")


@pytest.mark.services
def test_a_login_is_tried(kafka, capfd) -> None:
    good = Kafka(servers=kafka.sasl_servers, security_protocol="SASL_PLAINTEXT", username="penstock", password="secret")
    assert isinstance(Cluster(good).partitions(), dict)
    assert Cluster(good).creates_topics() is False
    began = time.monotonic()
    with pytest.raises(Fault) as raised:
        Cluster(good.model_copy(update={"password": "wrong-word"})).partitions()
    assert time.monotonic() - began < WITHIN
    assert raised.value.code == "KAFKA002"
    assert "wrong-word" not in raised.value.message
    assert "Authentication failed" in raised.value.message
    assert capfd.readouterr() == ("", "")
