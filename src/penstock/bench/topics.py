"""Topics of one run: made before it, and gone after it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from uuid import uuid4

_SECONDS = 60.0


@contextlib.contextmanager
def topic(servers: str, partitions: int) -> Iterator[str]:
    """A new topic. The broker notes when it takes a record, by its own clock."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    name = f"bench-{uuid4().hex[:12]}"
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    settings = {"message.timestamp.type": "LogAppendTime"}
    made = admin.create_topics([NewTopic(name, partitions, config=settings)], operation_timeout=_SECONDS)
    made[name].result(_SECONDS)
    try:
        yield name
    finally:
        admin.delete_topics([name], operation_timeout=_SECONDS)[name].result(_SECONDS)
