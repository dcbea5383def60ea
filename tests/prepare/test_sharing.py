"""Where tables keep their files, asked of their catalogs: the settings do not always say it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from penstock.facts.deployment import Deployment
from penstock.notation.paths import to_local
from penstock.pipeline import from_yaml, project
from penstock.pipeline.yaml_text import parse
from penstock.prepare import sharing
from penstock.prepare.judging import Judged

pytestmark = pytest.mark.spark


def warehouse(spark, key: str) -> Path:
    return to_local(spark.conf.get(key))


def test_tables_are_where_their_catalog_says(engine, spark, tmp_path):
    name = f"t{uuid4().hex[:8]}"
    spark.sql(f"CREATE TABLE {name} (n INT) USING parquet")
    spark.sql(f"CREATE TABLE {name}_far (n INT) USING delta LOCATION '{tmp_path}/far'")
    spark.sql(f"CREATE TABLE lake.{name}.t (n INT) USING iceberg")
    own, lake = warehouse(spark, "spark.sql.warehouse.dir"), warehouse(spark, "spark.sql.catalog.lake.warehouse")
    tables = {
        name: own / name,
        f"default.{name}": own / name,
        f"spark_catalog.default.{name}": own / name,
        f"{name}_far": tmp_path / "far",
        f"lake.{name}.t": lake / name / "t",
        f"default.{name}_missing": own,
    }
    deployment = Deployment(settings={"spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog"})
    for table, expected in tables.items():
        found = sharing._location(engine, table, sharing.catalog_of(table, deployment))
        assert found is not None
        assert to_local(found) == expected
    assert sharing._location(engine, "nowhere.a.b", "nowhere") is None


def test_the_running_spark_decides_where_it_differs_from_the_project(engine, tmp_path):
    settings = "name: p\nspark: {spark.master: yarn, spark.hadoop.fs.defaultFS: 'hdfs://n'}\nshared_paths: [a]\n"
    written = project.from_document(parse(settings, project.FILE), tmp_path)
    real = sharing._deployment(engine, written)
    assert (real.master, real.file_system) == (engine.spark.sparkContext.master, "file:///")
    assert real.shared == ((0, str(tmp_path / "a")),)


def test_a_table_in_a_local_folder_is_refused_where_tasks_run_elsewhere(engine, spark, tmp_path, monkeypatch):
    name = f"t{uuid4().hex[:8]}"
    spark.sql(f"CREATE TABLE {name} (n INT) USING delta LOCATION '{tmp_path}/far'")
    text = f"pipeline: p\nsources: {{t: {{type: delta, table: {name}}}}}\nsinks: {{o: {{of: t, type: console}}}}\n"
    pipeline = from_yaml.from_document(parse(text, "p.yaml"), tmp_path)
    bare = replace(project.bare(tmp_path), storage="hdfs://n/storage")
    # A metastore that alone knows where tables are, and another master than that of this test run.
    elsewhere = Deployment("yarn", storage="hdfs://n/s", settings={"spark.sql.catalogImplementation": "hive"})
    monkeypatch.setattr(sharing, "_deployment", lambda engine, project: elsewhere)
    (problem,) = sharing.sharing_problems(engine, Judged(bare, (pipeline,), (pipeline,)))
    assert (problem.code, str(problem.where)) == ("CLUSTER001", "p.yaml:2:35")
    assert f"`{tmp_path}/far`" in problem.message
