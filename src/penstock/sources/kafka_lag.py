"""How many records of Kafka topics a query has not committed yet."""

from __future__ import annotations

from penstock.connections.kafka_cluster import Cluster
from penstock.connections.kafka_offsets import IsOurs, in_log, next_offsets
from penstock.facts.observed import Unread
from penstock.sources.lag_meter import Committed


class KafkaLag:
    """Asks for the newest offsets of the partitions that the query reads: one request, over one connection.

    A partition that was added is counted from the first batch that reads it.
    """

    def __init__(self, cluster: Cluster, is_ours: IsOurs, *, of_transactions: bool) -> None:
        self._cluster, self._is_ours, self._of_transactions = cluster, is_ours, of_transactions

    def unread(self, committed: Committed) -> Unread | None:
        if committed.offsets:
            taken = in_log("\n".join(committed.offsets), self._is_ours)
        else:
            taken = next_offsets(committed.storage, committed.checkpoint, self._is_ours)
        if not taken:
            return None
        newest = self._cluster.newest(
            [(topic, partition) for topic, each in taken.items() for partition in each],
            committed=not self._of_transactions,
        )
        behind = [newest[topic][one] - offset for topic, each in taken.items() for one, offset in each.items()]
        return Unread(sum(max(0, count) for count in behind), "record")
