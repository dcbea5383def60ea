"""Where rows go. One file per sink; `penstock.catalog` lists them."""

from penstock.sinks.console import Console
from penstock.sinks.files import Files
from penstock.sinks.memory import Memory
from penstock.sinks.spark import Spark
from penstock.sinks.table import Table

__all__ = ["Console", "Files", "Memory", "Spark", "Table"]
