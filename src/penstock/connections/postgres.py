"""A PostgreSQL database."""

from __future__ import annotations

from typing import ClassVar, Literal

from penstock.connections.connection import ConnectionSpec
from penstock.spec import given_options, spark_option


class Postgres(ConnectionSpec):
    """A PostgreSQL database: where it is and who logs in."""

    type: Literal["postgres"] = "postgres"
    url: str = spark_option(..., "`jdbc:postgresql://host:5432/database`.", pattern="^jdbc:postgresql://")
    username: str | None = spark_option(None, "The user.", name="user")
    password: str | None = spark_option(None, "The password: a `${REFERENCE}`, so that it stands in no file.")

    connectors: ClassVar[tuple[str, ...]] = ("postgresql",)
    example: ClassVar[str] = (
        "{type: postgres, url: 'jdbc:postgresql://localhost/shop', username: shop, password: '${PG_PASSWORD}'}"
    )

    def spark_options(self) -> dict[str, str]:
        return {"driver": "org.postgresql.Driver"} | given_options(self)
