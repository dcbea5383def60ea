"""What every connection has."""

from __future__ import annotations

from typing import ClassVar

from penstock.spec import Part


class ConnectionSpec(Part):
    """An address with its auth. A source or sink names it instead of repeating it."""

    type: str

    connectors: ClassVar[tuple[str, ...]] = ()
    """The connectors whose jars it needs."""

    def spark_options(self) -> dict[str, str]:
        """The connection as options of the Spark data source that speaks its protocol."""
        raise NotImplementedError
