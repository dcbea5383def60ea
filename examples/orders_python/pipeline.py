"""Revenue per minute and region, in Python: the same pipeline as `../orders/pipeline.yaml`."""

from steps import unique_orders

from penstock import Pipeline, sinks, sources

pipeline = Pipeline(
    "orders",
    description="Revenue per minute and region, from orders that come late, twice or broken.",
    latency="low",
)

pipeline.source(
    "orders",
    sources.Files(
        path="data/orders",
        max_files_per_trigger=6,
        format={
            "type": "json",
            "schema": "order_id STRING, city STRING, amount DOUBLE, event_time TIMESTAMP, _corrupt_record STRING",
        },
        watermark={"column": "event_time", "delay": "5 minutes"},
    ),
)
pipeline.source(
    "cities",
    sources.Files(
        path="data/cities",
        format={"type": "csv", "header": True, "schema": "city STRING, region STRING"},
        read="static",
    ),
)

pipeline.sql("valid", "SELECT order_id, city, amount, event_time FROM orders WHERE _corrupt_record IS NULL")
pipeline.step()(unique_orders)
pipeline.sql(
    "revenue",
    """\
SELECT window.start AS minute, region, count(*) AS orders, sum(amount) AS revenue
FROM unique_orders JOIN cities USING (city)
GROUP BY window(event_time, '1 minute'), region
""",
)
pipeline.sql(
    "malformed",
    "SELECT _corrupt_record AS line FROM orders WHERE _corrupt_record IS NOT NULL AND order_id IS NULL",
)

pipeline.sink("revenue_table", sinks.Files(path="out/revenue", format="parquet"), of="revenue")
pipeline.sink("malformed_lines", sinks.Files(path="out/malformed", format="json"), of="malformed")
