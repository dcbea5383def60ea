"""Which formats come in jars that Spark does not ship."""

from __future__ import annotations

CONNECTOR_OF_FORMAT = {"avro": "avro", "delta": "delta", "iceberg": "iceberg", "kafka": "kafka"}


def connectors_for(format_name: str) -> tuple[str, ...]:
    connector = CONNECTOR_OF_FORMAT.get(format_name.lower())
    return (connector,) if connector else ()
