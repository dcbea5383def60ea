"""Catalogs of tables, declared in `penstock.yaml` under `catalogs:` and named in front of a table."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from penstock.notation.paths import PathText
from penstock.spec import Option, Part, to_option


class CatalogSpec(Part):
    """A catalog that Spark reads and writes tables through."""

    type: str

    connectors: ClassVar[tuple[str, ...]] = ()
    """The connectors whose jars it needs."""

    def settings(self, name: str) -> dict[str, str]:
        """The Spark settings that make the catalog known as `name`."""
        raise NotImplementedError


class IcebergCatalog(CatalogSpec):
    """An Iceberg catalog: on a file system (`hadoop`), in a Hive metastore, or behind REST."""

    type: Literal["iceberg"] = "iceberg"
    kind: Literal["hadoop", "hive", "rest"] = Field("hadoop", description="Where it keeps the list of its tables.")
    warehouse: PathText | None = Field(None, description="The folder of its tables; `hadoop` needs it.")
    uri: str | None = Field(None, description="The address of the metastore or REST server.")
    options: dict[str, Option] = Field(default_factory=dict, description="Further properties of the catalog.")

    connectors: ClassVar[tuple[str, ...]] = ("iceberg",)
    example: ClassVar[str] = "{type: iceberg, warehouse: lake}"

    def settings(self, name: str) -> dict[str, str]:
        prefix = f"spark.sql.catalog.{name}"
        # Uncached: another session would not see new snapshots otherwise.
        own = {"type": self.kind, "warehouse": self.warehouse, "uri": self.uri, "cache-enabled": False}
        properties = {key: value for key, value in own.items() if value is not None} | dict(self.options)
        return {prefix: "org.apache.iceberg.spark.SparkCatalog"} | {
            f"{prefix}.{key}": to_option(value) for key, value in properties.items()
        }


class Hive(CatalogSpec):
    """Spark's own catalog kept in a Hive metastore; without `uri` an embedded one, for one process at a time."""

    type: Literal["hive"] = "hive"
    warehouse: PathText = Field("warehouse", description="The folder of its tables.")
    uri: str | None = Field(None, description="`thrift://host:9083` of a metastore server.")
    metastore: PathText = Field("metastore_db", description="The folder of the embedded metastore.")

    example: ClassVar[str] = "{type: hive, warehouse: warehouse}"

    def settings(self, name: str) -> dict[str, str]:
        settings = {"spark.sql.catalogImplementation": "hive", "spark.sql.warehouse.dir": self.warehouse}
        if self.uri:
            return settings | {"spark.hadoop.hive.metastore.uris": self.uri}
        return settings | {
            "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={self.metastore};create=true"
        }


class Custom(CatalogSpec):
    """Any catalog class that is on Spark's class path."""

    type: Literal["custom"] = "custom"
    class_: str = Field(alias="class", description="The catalog's Java class.")
    options: dict[str, Option] = Field(default_factory=dict, description="Its properties.")

    example: ClassVar[str] = "{type: custom, class: org.apache.spark.sql.connector.catalog.InMemoryTableCatalog}"

    def settings(self, name: str) -> dict[str, str]:
        prefix = f"spark.sql.catalog.{name}"
        return {prefix: self.class_} | {f"{prefix}.{key}": to_option(value) for key, value in self.options.items()}
