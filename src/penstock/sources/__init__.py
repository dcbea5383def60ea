"""Where rows come from. One file per source; `penstock.catalog` lists them."""

from penstock.sources.delta import Delta
from penstock.sources.files import Files
from penstock.sources.iceberg import Iceberg
from penstock.sources.kafka import Kafka
from penstock.sources.postgres import Postgres
from penstock.sources.rate import Rate
from penstock.sources.rate_micro_batch import RateMicroBatch
from penstock.sources.socket import Socket
from penstock.sources.spark import Spark
from penstock.sources.table import Table

__all__ = ["Delta", "Files", "Iceberg", "Kafka", "Postgres", "Rate", "RateMicroBatch", "Socket", "Spark", "Table"]
