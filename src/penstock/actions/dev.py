"""Services for development, on this machine alone."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.engine.broker import Broker
from penstock.engine.connectors import Progress
from penstock.problems import Problem, UserError

_TOPIC = re.compile(r"(?!\.\.?$)[a-zA-Z0-9._-]{1,249}")
_TOPIC_SECONDS = 30.0
_TICK_SECONDS = 0.2


@dataclass(frozen=True)
class DevKafka:
    """A broker that is up."""

    servers: str
    folder: str
    temporary: bool
    topics: tuple[str, ...]
    started_in_seconds: float

    @property
    def export(self) -> str:
        """The line for a shell, after which a project reads `${KAFKA_SERVERS}`."""
        return f"export KAFKA_SERVERS={self.servers}"

    def to_json(self) -> dict[str, Any]:
        return {
            "ok": True,
            "servers": self.servers,
            "folder": self.folder,
            "temporary": self.temporary,
            "topics": list(self.topics),
            "started_in_seconds": round(self.started_in_seconds, 2),
        }


@contextmanager
def dev_kafka(
    port: int, folder: Path | None, topics: Sequence[str], on_progress: Progress | None = None
) -> Iterator[tuple[DevKafka, Broker]]:
    """A broker with these topics, which ends with the block; without a folder its data is removed then.

    UserError DEV005 for a topic's name, DEV006 when a topic cannot be made, and what `Broker.start` raises.
    """
    names = tuple(dict.fromkeys(topics))
    require_topic_names(names)
    with ExitStack() as held:
        place = folder or Path(held.enter_context(tempfile.TemporaryDirectory(prefix="penstock-kafka-")))
        began = time.monotonic()
        broker = held.enter_context(Broker(place, port, on_progress=on_progress))
        create_topics(broker.servers, names)
        yield DevKafka(broker.servers, str(place), folder is None, names, time.monotonic() - began), broker


def wait_while_running(broker: Broker) -> None:
    """Returns never: ends with UserError DEV007 when the broker ends by itself, or with what a signal raises."""
    while broker.running:
        time.sleep(_TICK_SECONDS)
    said = broker.log_tail()
    raise UserError(
        Problem(
            "DEV007",
            "the broker has ended by itself" + (f"; it said:\n{said}" if said else ""),
            "run `penstock dev kafka` again; if the system killed the broker to free memory, end other programs first",
        )
    )


def require_topic_names(names: Sequence[str]) -> None:
    problems = [
        Problem(
            "DEV005",
            f"`{name}` cannot be the name of a topic",
            "use 1 to 249 letters, digits, dots, dashes and underscores, and not `.` or `..` alone",
        )
        for name in names
        if not _TOPIC.fullmatch(name)
    ]
    if problems:
        raise UserError(problems)


def create_topics(servers: str, names: Sequence[str]) -> None:
    """Makes those that are not there yet, with one partition each."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    if not names:
        return
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    made = admin.create_topics([NewTopic(name, num_partitions=1) for name in names], operation_timeout=_TOPIC_SECONDS)
    problems = []
    for name, future in made.items():
        try:
            future.result(_TOPIC_SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                fix = "give the topic another name"
                problems.append(Problem("DEV006", f"the topic `{name}` cannot be made: {error.args[0].str()}", fix))
    if problems:
        raise UserError(problems)
