"""Which options of Kafka's clients a user may pass through, and why the others may not.

Some options of a Kafka client load a class by its name or log in through a module of choice: whoever can write them
can run code. So an option passes only if it is on the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.problems import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FETCH_WAIT, POLL_RECORDS, FETCH_BYTES = "fetch.max.wait.ms", "max.poll.records", "max.partition.fetch.bytes"
LINGER, BATCH_BYTES = "linger.ms", "batch.size"

_CLIENT = {
    "allow.auto.create.topics", "client.dns.lookup", "client.id", "client.rack", "connections.max.idle.ms",
    "default.api.timeout.ms", "metadata.max.age.ms", "receive.buffer.bytes", "reconnect.backoff.max.ms",
    "reconnect.backoff.ms", "retries", "retry.backoff.max.ms", "retry.backoff.ms", "send.buffer.bytes",
    "socket.connection.setup.timeout.max.ms", "socket.connection.setup.timeout.ms",
}  # fmt: skip
_CONSUMER = {
    "check.crcs", "exclude.internal.topics", "fetch.max.bytes", FETCH_WAIT, "fetch.min.bytes",
    "heartbeat.interval.ms", FETCH_BYTES, "max.poll.interval.ms", POLL_RECORDS, "session.timeout.ms",
}  # fmt: skip
_PRODUCER = {
    "buffer.memory", "compression.gzip.level", "compression.lz4.level", "compression.zstd.level", "max.block.ms",
    "max.in.flight.requests.per.connection", "metadata.max.idle.ms", "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms", "partitioner.ignore.keys",
}  # fmt: skip
_SECURITY = {
    "sasl.kerberos.service.name", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms",
    "ssl.cipher.suites", "ssl.enabled.protocols", "ssl.keymanager.algorithm", "ssl.protocol",
    "ssl.trustmanager.algorithm",
}  # fmt: skip
ALLOWED = frozenset(_CLIENT | _CONSUMER | _PRODUCER | _SECURITY)

_OWN_KEYS = {
    "acks": "acks", BATCH_BYTES: "batch_bytes", "bootstrap.servers": "servers", "compression.type": "compression",
    "delivery.timeout.ms": "delivery_timeout", "enable.idempotence": "idempotence",
    "isolation.level": "isolation_level", LINGER: "linger", "max.request.size": "max_request_bytes",
    "request.timeout.ms": "request_timeout", "sasl.mechanism": "sasl_mechanism",
    "security.protocol": "security_protocol", "ssl.endpoint.identification.algorithm": "ssl_verify_host",
    "ssl.key.password": "ssl_key_password", "ssl.keystore.certificate.chain": "ssl_keystore_certificates",
    "ssl.keystore.key": "ssl_keystore_key", "ssl.keystore.location": "ssl_keystore_location",
    "ssl.keystore.password": "ssl_keystore_password", "ssl.keystore.type": "ssl_keystore_type",
    "ssl.truststore.certificates": "ssl_truststore_certificates", "ssl.truststore.location": "ssl_truststore_location",
    "ssl.truststore.password": "ssl_truststore_password", "ssl.truststore.type": "ssl_truststore_type",
}  # fmt: skip
_REFUSED: tuple[tuple[str, str], ...] = (
    (r"jaas|login\.(?!connect|read)", "a login module runs code of its own choice: write `username` and `password`"),
    (r"^(key|value)\.(de)?serializer", "Penstock decodes and encodes records: write `format` and `key_format`"),
    (r"^group\.(id|instance\.id)$", "each query reads in a group of its own: write `group_id_prefix` or `group_id`"),
    (r"^auto\.offset\.reset$", "where a new query begins is told by `starting`"),
    (r"^enable\.auto\.commit|^auto\.commit", "the checkpoint keeps what was read, not the broker"),
    (r"^transactional\.|^transaction\.", "Spark's Kafka sink writes without transactions"),
    (r"class(es)?$|reporters?$|\.providers?$|handler|factory|interceptor", "it loads a class by its name"),
)


def session_setting(option: str) -> str:
    """The setting with which a query's session chooses an option of Kafka's clients for its sources and sinks.

    They have no other way to know how the query runs.
    """
    first, *rest = option.split(".")
    return "spark.sql.penstock.kafka." + first + "".join(word.capitalize() for word in rest)


def chosen_by(session: SparkSession, settings: Iterable[str]) -> dict[str, str]:
    """The options of Kafka's clients that a session chooses, as Spark takes them, out of these settings."""
    found = {_OPTIONS[setting]: session.conf.get(setting, None) for setting in settings}
    return {f"kafka.{option}": value for option, value in found.items() if value is not None}


def refusal(options: Iterable[str]) -> str | None:
    """Why these client options (without `kafka.` in front) may not pass; None if all of them may."""
    for option in options:
        name = option.removeprefix("kafka.").lower()
        if option != name and name in ALLOWED:
            return f"write `{name}` for `{option}` in `kafka_options`"
        if name in ALLOWED:
            continue
        if name in _OWN_KEYS:
            return f"`{option}` is not for `kafka_options`: it has a key of its own, `{_OWN_KEYS[name]}`"
        for pattern, why in _REFUSED:
            if re.search(pattern, name):
                return f"`{option}` is refused in `kafka_options`: {why}"
        return f"`{option}` is no option that `kafka_options` takes{did_you_mean(name, ALLOWED)}"
    return None


_OPTIONS = {session_setting(one): one for one in (FETCH_WAIT, POLL_RECORDS, FETCH_BYTES, LINGER, BATCH_BYTES)}
