"""A Kafka cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.connections.connection import ConnectionSpec
from penstock.connections.kafka_options import refusal
from penstock.facts import stores
from penstock.notation.durations import Duration, to_milliseconds
from penstock.notation.paths import PathText
from penstock.spec import Option, Spec, spark_option, spark_option_names, to_option

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Store = Literal["JKS", "PKCS12", "PEM"]


class KafkaAddress(Spec):
    """A Kafka cluster and how to log in. The same keys in a connection, a source and a sink: the nearest one wins."""

    servers: str | None = spark_option(None, "`host:port`, several with commas.", name="kafka.bootstrap.servers")
    security_protocol: Protocol | None = spark_option(
        None,
        "How the wire is protected. By default SASL_SSL with a `username`, SSL with any `ssl_` key, else PLAINTEXT.",
        name="kafka.security.protocol",
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = spark_option(
        None, "How a user logs in; PLAIN by default.", name="kafka.sasl.mechanism"
    )
    username: str | None = Field(None, description="The user who logs in.")
    password: str | None = Field(None, description="The password: a `${REFERENCE}`, so that it stands in no file.")
    ssl_truststore_location: PathText | None = spark_option(
        None, "The trust store, on every machine.", name="kafka.ssl.truststore.location"
    )
    ssl_truststore_password: str | None = spark_option(
        None, "The trust store's password.", name="kafka.ssl.truststore.password"
    )
    ssl_truststore_type: Store | None = spark_option(
        None, "Format of the trust store; JKS by default.", name="kafka.ssl.truststore.type"
    )
    ssl_truststore_certificates: str | None = spark_option(
        None, "Trusted certificates as PEM text, in place of a trust store.", name="kafka.ssl.truststore.certificates"
    )
    ssl_keystore_location: PathText | None = spark_option(
        None, "The client's own key store, on every machine.", name="kafka.ssl.keystore.location"
    )
    ssl_keystore_password: str | None = spark_option(
        None, "The key store's password.", name="kafka.ssl.keystore.password"
    )
    ssl_keystore_type: Store | None = spark_option(
        None, "Format of the key store; JKS by default.", name="kafka.ssl.keystore.type"
    )
    ssl_keystore_certificates: str | None = spark_option(
        None, "The client's certificate chain as PEM text.", name="kafka.ssl.keystore.certificate.chain"
    )
    ssl_keystore_key: str | None = spark_option(
        None, "The client's private key as PEM text (PKCS#8): a `${REFERENCE}`.", name="kafka.ssl.keystore.key"
    )
    ssl_key_password: str | None = spark_option(
        None, "The password of the client's private key.", name="kafka.ssl.key.password"
    )
    ssl_verify_host: bool = Field(True, description="Whether the broker's certificate must name its host.")
    request_timeout: Duration | None = Field(
        None, description="How long a client waits for the answer to one request; Kafka's default is 30 seconds."
    )
    kafka_options: dict[str, Option] = Field(
        default_factory=dict,
        description="Further options of Kafka's clients by their own names, such as `fetch.min.bytes`. Those that load"
        " classes or login modules are refused. Given here, they stand in place of the connection's.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if why := refusal(self.kafka_options):
            raise PydanticCustomError("kafka", "{why}", {"why": why})
        if self.servers is None:
            return self  # a part of an address: a connection gives the rest
        if self.security_protocol in ("PLAINTEXT", "SSL") and (self.username or self.sasl_mechanism):
            raise PydanticCustomError(
                "kafka",
                "nobody logs in over `security_protocol: {protocol}`: write `SASL_{protocol}`, or no `username`",
                {"protocol": self.security_protocol},
            )
        if (self.sasl_mechanism or self.password) and self.username is None:
            raise PydanticCustomError("kafka", "`sasl_mechanism` and `password` need a `username`")
        return self

    def topic_stores(
        self, topics: Iterable[str], connection: str | None, pattern: str | None = None
    ) -> tuple[stores.Store, ...]:
        """Topics of this cluster, by name and by pattern, as places that others may read or write too."""
        at = self.servers or ""
        named = tuple(stores.Store("topic", topic, at, connection) for topic in topics)
        return (*named, stores.Store("topic", pattern, at, connection, is_pattern=True)) if pattern else named

    def address_options(self) -> dict[str, str]:
        """The address as options of Spark's Kafka source and sink."""
        options = {
            option: to_option(value)
            for name, option in spark_option_names(KafkaAddress).items()
            if (value := getattr(self, name)) is not None
        }
        if self._protocol != "PLAINTEXT":
            options["kafka.security.protocol"] = self._protocol
        if self.username is not None:
            options["kafka.sasl.mechanism"] = self._mechanism
            options["kafka.sasl.jaas.config"] = _jaas(self._mechanism, self.username, self.password or "")
        if not self.ssl_verify_host:
            options["kafka.ssl.endpoint.identification.algorithm"] = ""
        if self.request_timeout is not None:
            options["kafka.request.timeout.ms"] = str(to_milliseconds(self.request_timeout))
        return options | {f"kafka.{name}": to_option(value) for name, value in self.kafka_options.items()}

    def client_config(self) -> dict[str, Any]:
        """The address as confluent-kafka takes it. Java's key stores are not for it: see `is_for_java_alone`."""
        config: dict[str, Any] = {"bootstrap.servers": self.servers, "security.protocol": self._protocol}
        if self.username is not None:
            login = {"sasl.username": self.username, "sasl.password": self.password or ""}
            config |= {"sasl.mechanism": self._mechanism} | login
        if not self.ssl_verify_host:
            config["ssl.endpoint.identification.algorithm"] = "none"
        given = {
            "ssl.ca.location": self.ssl_truststore_location,
            "ssl.ca.pem": self.ssl_truststore_certificates,
            "ssl.certificate.pem": self.ssl_keystore_certificates,
            "ssl.key.pem": self.ssl_keystore_key,
            "ssl.key.password": self.ssl_key_password,
        }
        if self.ssl_keystore_type == "PKCS12":
            given |= {"ssl.keystore.location": self.ssl_keystore_location}
            given |= {"ssl.keystore.password": self.ssl_keystore_password}
        else:
            given |= dict.fromkeys(("ssl.certificate.location", "ssl.key.location"), self.ssl_keystore_location)
        return config | {name: value for name, value in given.items() if value is not None}

    @property
    def is_for_java_alone(self) -> bool:
        """Does the address name a store that only Java reads? Then nobody but Spark can try it."""
        trust_in_java = self.ssl_truststore_location is not None and self.ssl_truststore_type != "PEM"
        key_in_java = self.ssl_keystore_location is not None and self.ssl_keystore_type not in ("PEM", "PKCS12")
        return trust_in_java or key_in_java

    @property
    def _protocol(self) -> Protocol:
        if self.security_protocol is not None:
            return self.security_protocol
        if self.username is not None:
            return "SASL_SSL"  # a password never goes over an open wire unless the user says so
        return "SSL" if any(name.startswith("ssl_") for name in self.model_fields_set) else "PLAINTEXT"

    @property
    def _mechanism(self) -> str:
        return self.sasl_mechanism or "PLAIN"


class Kafka(ConnectionSpec, KafkaAddress):
    """A Kafka cluster: its servers and how to log in."""

    type: Literal["kafka"] = "kafka"
    servers: str = spark_option(..., "`host:port`, several with commas.", name="kafka.bootstrap.servers")

    connectors: ClassVar[tuple[str, ...]] = ("kafka",)
    example: ClassVar[str] = "{type: kafka, servers: '${KAFKA_SERVERS:-localhost:9092}'}"

    def spark_options(self) -> dict[str, str]:
        return self.address_options()


def require_address(part: KafkaAddress, connection: str | None) -> None:
    """Raises a validation error if a source or sink says neither where its cluster is nor which connection does."""
    if part.servers is None and connection is None:
        raise PydanticCustomError(
            "kafka", "it names no cluster: give `servers: host:port`, or `connection:` with a name from penstock.yaml"
        )


def _jaas(mechanism: str, username: str, password: str) -> str:
    module = "scram.ScramLoginModule" if mechanism.startswith("SCRAM") else "plain.PlainLoginModule"
    return (
        f"org.apache.kafka.common.security.{module} required username={_quoted(username)} password={_quoted(password)};"
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
