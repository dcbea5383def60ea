"""A Kafka cluster."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from penstock.connections.connection import ConnectionSpec
from penstock.paths import PathText
from penstock.spec import given_options, spark_option


class Kafka(ConnectionSpec):
    """A Kafka cluster: its servers and how to log in."""

    type: Literal["kafka"] = "kafka"
    servers: str = spark_option(..., "`host:port`, several with commas.", name="kafka.bootstrap.servers")
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = spark_option(
        "PLAINTEXT", "How the wire is protected.", name="kafka.security.protocol"
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = spark_option(
        None, "How a user logs in.", name="kafka.sasl.mechanism"
    )
    username: str | None = Field(None, description="The user, with `sasl_mechanism`.")
    password: str | None = Field(None, description="The password: a `${REFERENCE}`, so that it stands in no file.")
    ssl_truststore_location: PathText | None = spark_option(
        None, "The trust store, on every machine.", name="kafka.ssl.truststore.location"
    )
    ssl_truststore_password: str | None = spark_option(
        None, "The trust store's password.", name="kafka.ssl.truststore.password"
    )

    connectors: ClassVar[tuple[str, ...]] = ("kafka",)
    example: ClassVar[str] = "{type: kafka, servers: '${KAFKA_SERVERS:-localhost:9092}'}"

    def spark_options(self) -> dict[str, str]:
        options = given_options(self)
        if self.username is not None:
            scram = (self.sasl_mechanism or "PLAIN").startswith("SCRAM")
            module = "scram.ScramLoginModule" if scram else "plain.PlainLoginModule"
            options["kafka.sasl.jaas.config"] = (
                f"org.apache.kafka.common.security.{module} required "
                f"username={_quoted(self.username)} password={_quoted(self.password or '')};"
            )
        return options


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
