"""The count and sum of each key once more, by a stateful processor in Python."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.bench.job import Job
from penstock.bench.workloads import keyed_count
from penstock.bench.workloads.workload import code

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTPUT = "card BIGINT, payments BIGINT, cents BIGINT, sent BIGINT"
_AGGREGATION = keyed_count.PIPELINE[keyed_count.PIPELINE.index("    sql:") : keyed_count.PIPELINE.index("sinks:")]
PIPELINE = keyed_count.PIPELINE.replace(
    _AGGREGATION,
    f'    process: {{of: payments, key: [card], with: "spending:Spending", output: "{OUTPUT}"}}\n',
)


def by_hand(payments: DataFrame, job: Job) -> DataFrame:
    from penstock.bench.workloads.code.spending import Spending

    return payments.groupBy("card").transformWithState(Spending(), OUTPUT, "Update", "None")


WORKLOAD = replace(
    keyed_count.WORKLOAD,
    name="processor",
    title="count and sum for each of 1,000 keys, by a StatefulProcessor in Python",
    pipeline=PIPELINE,
    by_hand=by_hand,
    flink=None,
    runs_python=True,
    settings={
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        )
    },
    files={"spending.py": code("spending.py")},
)
