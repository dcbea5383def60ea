"""Where rows go. One file per sink; `penstock.catalog` lists them."""

from penstock.sinks.console import Console
from penstock.sinks.delta import Delta
from penstock.sinks.files import Files
from penstock.sinks.http import Http
from penstock.sinks.iceberg import Iceberg
from penstock.sinks.jdbc import Jdbc
from penstock.sinks.kafka import Kafka
from penstock.sinks.memory import Memory
from penstock.sinks.postgres import Postgres
from penstock.sinks.python import Python
from penstock.sinks.spark import Spark
from penstock.sinks.table import Table

__all__ = [
    "Console",
    "Delta",
    "Files",
    "Http",
    "Iceberg",
    "Jdbc",
    "Kafka",
    "Memory",
    "Postgres",
    "Python",
    "Spark",
    "Table",
]
