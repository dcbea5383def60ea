"""A running Kafka cluster, asked from the driver without Spark: who is there, which topics, which offsets."""

from __future__ import annotations

import logging
import socket
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from penstock.connections.kafka import KafkaAddress
from penstock.connections.kafka_offsets import Offsets
from penstock.problems import Fault

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_WAIT_SECONDS = 5.0
_ASK_SECONDS = 1.0
_KEPT_ERRORS = 100
_LOGGER = logging.getLogger("penstock.kafka")


class Cluster:
    """Answers within seconds, or raises Fault: KAFKA001 not reachable, KAFKA002 the login is refused.

    `keys` is where the user wrote the address.
    """

    def __init__(self, address: KafkaAddress, keys: tuple[str, ...] = ("servers",)) -> None:
        self._address, self._keys = address, keys
        self._errors: deque[Any] = deque(maxlen=_KEPT_ERRORS)
        self._client: AdminClient | None = None

    def reach(self) -> None:
        """Opens a connection to one of the servers, and no more: for addresses that only Java can log in to."""
        servers = [server.strip().rpartition(":") for server in str(self._address.servers).split(",")]
        cause: OSError | ValueError = OSError("no server is named")
        for host, _, port in servers:
            try:
                socket.create_connection((host.strip("[]"), int(port)), _WAIT_SECONDS / len(servers)).close()
            except (OSError, ValueError) as error:
                cause = error
            else:
                return
        self._refuse(cause)

    def partitions(self) -> dict[str, frozenset[int]]:
        """The partitions of every topic that this user may see. No topic is made by asking."""
        topics = self._asked(lambda client: client.list_topics(timeout=_ASK_SECONDS)).topics
        return {name: frozenset(topic.partitions) for name, topic in topics.items() if topic.error is None}

    def offsets(self, partitions: Iterable[tuple[str, int]]) -> tuple[Offsets, Offsets]:
        """The first offset that is left, and the next one to be written, of partitions that are there."""
        from confluent_kafka import TopicPartition

        admin = _admin()
        wanted = [TopicPartition(topic, partition) for topic, partition in partitions]
        found: list[Offsets] = []
        for edge in (admin.OffsetSpec.earliest(), admin.OffsetSpec.latest()):
            question = dict.fromkeys(wanted, edge)
            asked = self._opened().list_offsets(question, request_timeout=_WAIT_SECONDS)
            offsets: Offsets = {}
            for place, future in asked.items():
                offsets.setdefault(place.topic, {})[place.partition] = self._result(future).offset
            found.append(offsets)
        return found[0], found[1]

    def newest(self, partitions: Iterable[tuple[str, int]], *, committed: bool) -> Offsets:
        """The next offset to be written; with `committed`, the one up to which no transaction is open."""
        import confluent_kafka

        admin = _admin()
        level, client = confluent_kafka.IsolationLevel, self._opened()
        client.poll(0)  # takes what went wrong since it was asked last
        asked = client.list_offsets(
            {confluent_kafka.TopicPartition(topic, one): admin.OffsetSpec.latest() for topic, one in partitions},
            isolation_level=level.READ_COMMITTED if committed else level.READ_UNCOMMITTED,
            request_timeout=_WAIT_SECONDS,
        )
        offsets: Offsets = {}
        for place, future in asked.items():
            offsets.setdefault(place.topic, {})[place.partition] = self._result(future).offset
        return offsets

    def offsets_at(self, partitions: Iterable[tuple[str, int]], moment_ms: int | None) -> Offsets:
        """The first offset that is as late as a moment, or the end where none is; None: the end."""
        from confluent_kafka import TopicPartition

        wanted = [TopicPartition(topic, partition) for topic, partition in partitions]
        _, ends = self.offsets([(one.topic, one.partition) for one in wanted])
        if moment_ms is None:
            return ends
        question = dict.fromkeys(wanted, _admin().OffsetSpec.for_timestamp(moment_ms))
        for place, future in self._opened().list_offsets(question, request_timeout=_WAIT_SECONDS).items():
            offset = self._result(future).offset
            if offset >= 0:
                ends[place.topic][place.partition] = offset
        return ends

    def creates_topics(self) -> bool | None:
        """Does a broker make a topic when somebody writes to it? None if this user may not know."""
        from confluent_kafka import KafkaException

        admin = _admin()
        brokers = self._asked(lambda client: client.list_topics(timeout=_ASK_SECONDS)).brokers
        asked = admin.ConfigResource(admin.ResourceType.BROKER, str(next(iter(brokers))))
        (future,) = self._opened().describe_configs([asked], request_timeout=_ASK_SECONDS).values()
        try:
            return str(future.result(_WAIT_SECONDS)["auto.create.topics.enable"].value) == "true"
        except (KafkaException, KeyError, TimeoutError):
            return None

    def _opened(self) -> AdminClient:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        if self._client is None:
            if self._address.servers is None:
                raise Fault("KAFKA001", "the connection that it names is no Kafka cluster",
                            "name a connection of `type: kafka`", self._keys)  # fmt: skip
            quiet = {"error_cb": self._errors.append, "log_level": 0, "socket.connection.setup.timeout.ms": 3_000}
            _LOGGER.propagate = False  # librdkafka says the same things again, in words of its own
            _LOGGER.addHandler(logging.NullHandler())
            try:
                self._client = AdminClient(self._address.client_config() | quiet, logger=_LOGGER)
            except KafkaException as error:
                self._refuse(error.args[0])
        return self._client

    def _asked(self, question: Any) -> Any:
        """The answer to a question that is put again until it is answered, the login refused or the time over."""
        from confluent_kafka import KafkaException

        client, deadline = self._opened(), time.monotonic() + _WAIT_SECONDS
        while True:
            try:
                return question(client)
            except KafkaException as error:
                client.poll(0)  # lets the client tell what went wrong
                if self._login_error() or time.monotonic() > deadline:
                    self._refuse(error.args[0])

    def _result(self, future: Any) -> Any:
        from confluent_kafka import KafkaException

        try:
            return future.result(_WAIT_SECONDS)
        except (KafkaException, TimeoutError) as error:
            self._refuse(error.args[0] if error.args else error)

    def _login_error(self) -> Any:
        from confluent_kafka import KafkaError

        return next((error for error in self._errors if error.code() == KafkaError._AUTHENTICATION), None)

    def _refuse(self, last: Any) -> NoReturn:
        from confluent_kafka import KafkaError

        servers = self._address.servers
        if login := self._login_error():
            raise Fault(
                "KAFKA002", f"the Kafka cluster at {servers} refuses the login: {_words(login)}",
                "look at `username`, `password`, `sasl_mechanism` and `security_protocol`", self._keys,
            )  # fmt: skip
        vague = (KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT)
        cause = next((error for error in self._errors if error.code() not in vague), last)
        raise Fault(
            "KAFKA001", f"the Kafka cluster at {servers} cannot be reached: {_words(cause)}",
            "look at `servers` and `security_protocol`, and whether the broker runs and this machine may reach it",
            self._keys,
        )  # fmt: skip


def _admin() -> Any:
    from confluent_kafka import admin

    return admin  # it does not say which of its names are meant for others


def _words(error: Any) -> str:
    said = error.str() if hasattr(error, "str") else str(error)
    # `sasl_plaintext://host:9092/bootstrap: what happened (after 3ms in state CONNECT)`
    return said.rpartition("/bootstrap: ")[2].partition(" (after ")[0].strip() or "no answer"
