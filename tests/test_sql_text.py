"""Names and texts in SQL."""

from __future__ import annotations

import pytest

from penstock.notation.sql_text import literal, quoted

NAMES = ["plain", "a b", "a.b", "back`quote", "``", "SELECT"]
TEXTS = ["", "plain", "it's", "back\\slash", "\\'", "a\nb"]


@pytest.mark.spark
def test_spark_reads_names_and_texts_as_they_are(spark):
    """Each name is the name of a column, and each text its value."""
    columns = ", ".join(f"{literal(text)} AS {quoted(name)}" for name, text in zip(NAMES, TEXTS, strict=True))
    rows = spark.sql(f"SELECT {columns}")
    assert rows.columns == NAMES
    assert list(rows.select(*map(quoted, NAMES)).first()) == TEXTS
