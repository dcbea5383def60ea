"""What `write: upsert` means, the same for every table: keys, the row that wins, rows that delete."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.notation.sql_text import quoted
from penstock.problems import Fault
from penstock.sinks.sink import Mode, SinkCapabilities
from penstock.spec import Spec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Write = Literal["append", "upsert", "overwrite"]
_TAKES: dict[Write, frozenset[Mode]] = {
    "append": frozenset({"append"}),
    "upsert": frozenset({"append", "update", "complete"}),
    "overwrite": frozenset({"complete"}),
}
DELETES = "_penstock_deletes"
"""The column by which `changes` marks the rows that remove their key."""
_RANK = "_penstock_rank"


class TableWrites(Spec):
    """How rows get into a table.

    - `append` adds rows that are final.
    - `upsert` keeps one row for each value of `keys`, NULLs included. Of several rows of one key in a batch the one
      with the greatest `latest_by` wins, and it never overwrites a row of the table that has a greater one; without
      `latest_by` two rows of one key in a batch are refused. A row for which `delete_when` holds removes its key,
      unless the table's row is newer. NULL in `latest_by` is older than everything; of equals the one that came last
      wins. Columns of the table that the rows do not have keep what they hold.
    - `overwrite` replaces all rows by those of the batch, for queries in mode `complete`.

    A deleted key leaves no trace. If an older row of it comes in a later batch, it is new to the table and is inserted.
    Where rows may come that late, keep deleted rows in the table, marked by a column of their own, and let readers
    filter them: without `delete_when`, `latest_by` refuses the older row.
    """

    # Not `write`: a sink has a method of that name.
    writes: Write = Field("append", alias="write", description="`append`, `upsert` by `keys`, or `overwrite`.")
    keys: tuple[str, ...] = Field((), description="With `upsert`: the columns that tell one row from another.")
    latest_by: str | None = Field(
        None, description="With `upsert`: the column whose greatest value wins. It must be a column of the table."
    )
    delete_when: str | None = Field(
        None, description="With `upsert`: a SQL condition on a row; where it holds, the key is deleted."
    )

    @model_validator(mode="after")
    def _upsert_keys(self) -> Self:
        if self.writes == "upsert" and not self.keys:
            raise PydanticCustomError("upsert", "`write: upsert` needs `keys`, the columns that tell rows apart")
        if self.writes != "upsert":
            for name in ("keys", "latest_by", "delete_when"):
                if getattr(self, name):
                    raise PydanticCustomError("upsert", "`{name}` belongs to `write: upsert`", {"name": name})
        return self


def modes_for(write: Write) -> frozenset[Mode]:
    """The output modes that make sense for a way of writing."""
    return _TAKES[write]


def in_a_lake(capabilities: SinkCapabilities, write: Write) -> SinkCapabilities:
    """What a sink for a table can do if Spark's own sink knows `append` and `overwrite`, and Penstock `upsert`."""
    spark_writes = write != "upsert"
    return replace(capabilities, output_modes=modes_for(write), native=spark_writes, single_pass=spark_writes)


def winners(rows: DataFrame, spec: TableWrites) -> DataFrame:
    """The one row of each key that a batch stands for. Raises Fault if there are several and none is the latest.

    Keys compare null-safe. Rows that tie in `latest_by` are told apart by their content, the same way each time.
    """
    from pyspark.sql import Window
    from pyspark.sql.functions import col, count, lit, row_number, struct

    keys = [col(quoted(key)) for key in spec.keys]
    if spec.latest_by is None:
        counted = rows.groupBy(*keys).agg(count(lit(1)).alias(_RANK))
        twice = counted.where(f"{_RANK} > 1").limit(1).collect()
        if twice:
            *values, times = twice[0]
            named = ", ".join(f"{key}={value!r}" for key, value in zip(spec.keys, values, strict=True))
            raise Fault("SINK005", f"the batch holds {times} rows of the key {named}",
                        "name the column whose greatest value wins: `latest_by: <column>`; or group by the keys",
                        ("keys",))  # fmt: skip
        return rows
    latest = col(quoted(spec.latest_by))
    content = struct(*(col(quoted(name)).cast("string") for name in rows.columns))
    newest_first = Window.partitionBy(*keys).orderBy(latest.desc_nulls_last(), content.desc())
    return rows.withColumn(_RANK, row_number().over(newest_first)).where(f"{_RANK} = 1").drop(_RANK)


def changes(rows: DataFrame, spec: TableWrites) -> DataFrame:
    """The winners, with a column `DELETES` that is true where a row removes its key. Raises Fault like `winners`."""
    from pyspark.sql.functions import coalesce, expr, lit

    deletes = coalesce(expr(spec.delete_when), lit(False)) if spec.delete_when else lit(False)
    return winners(rows, spec).withColumn(DELETES, deletes)
