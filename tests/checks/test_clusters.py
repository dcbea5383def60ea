"""Local paths under a master that is not local: each is found, at its key, and nothing else is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import catalog
from penstock.checks.every_rule import judge, rules
from penstock.checks.local_paths import FILES_OF_EACH_MACHINE
from penstock.checks.rule import Rule, Subject
from penstock.dead_letters.leaving import dead_letter_sinks
from penstock.engine import resolve
from penstock.notation.masters import is_one_machine
from penstock.notation.paths import is_path
from penstock.pipeline import from_yaml, project
from penstock.pipeline.load import Loaded
from penstock.pipeline.yaml_text import parse
from penstock.prepare.judging import judge_all, judged_fast
from penstock.problems import Problem

ROOT = Path("/srv/shop")
CLUSTER = "name: shop\nspark: {spark.master: 'spark://master:7077'}\n"
REMOTE = f"{CLUSTER}storage: hdfs://namenode/storage\n"
RATE = "pipeline: p\nsources: {ticks: {type: rate}}\n"


def subject_of(settings: str, text: str) -> Subject:
    one = project.from_document(parse(settings, project.FILE), ROOT)
    pipeline = from_yaml.from_document(parse(text, "p.yaml"), ROOT)
    return Subject(one, pipeline, deployment=resolve.deployment(one, os.environ))


def problems_of(settings: str, text: str) -> list[Problem]:
    found = judge(subject_of(settings, text))
    return [problem for problem in found if problem.code.startswith("CLUSTER")]


@pytest.mark.parametrize(
    ("master", "is_here"),
    [
        ("local", True),
        ("local[*]", True),
        ("local[2,4]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://local:7077", False),
        ("localhost:7077", False),
        ("yarn", False),
        ("k8s://https://local", False),
    ],
)
def test_which_masters_run_on_one_machine(master: str, is_here: bool) -> None:
    assert is_one_machine(master) == is_here
    settings = f"name: shop\nspark: {{spark.master: '{master}'}}\n"
    found = problems_of(settings, f"{RATE}sinks: {{out: {{of: ticks, type: console}}}}\n")
    assert [problem.code for problem in found] == ([] if is_here else ["CLUSTER001"])


FOUND = {
    "storage": (
        f"{CLUSTER}storage: ▶kept\n",
        f"{RATE}sinks: {{out: {{of: ticks, type: console}}}}\n",
        ["`storage` is `/srv/shop/kept`"],
    ),
    "default storage": (
        f"▶{CLUSTER}",
        f"{RATE}sinks: {{out: {{of: ticks, type: console}}}}\n",
        ["`storage` is `/srv/shop/storage`"],
    ),
    "source and sink of files": (
        REMOTE,
        "pipeline: p\nsources:\n  lines:\n    type: files\n    path: ▶in/2026-*/x\n    format: text\n"
        "sinks:\n  out: {of: lines, type: files, path: '▶file:/srv/out', format: text}\n",
        [
            "`path` of source `lines` is `/srv/shop/in`",
            "`path` of sink `out` is `/srv/out`",
        ],
    ),
    "static source, archive and schemas": (
        REMOTE,
        "pipeline: p\nsources:\n  ticks: {type: rate}\n"
        "  prices: {type: files, read: static, path: ▶/prices, format: {type: csv, schema: n INT}}\n"
        "  lines:\n    type: files\n    path: hdfs://namenode/in\n    format: json\n    clean_source: archive\n"
        "    source_archive_dir: ▶archive\n    on_new_columns: add\n    schema_location: ▶schemas\n"
        "sinks:\n  a: {of: ticks, type: console}\n  b: {of: lines, type: console}\n  c: {of: prices, type: console}\n",
        [
            "`path` of source `prices` is `/prices`",
            "`source_archive_dir` of source `lines` is `/srv/shop/archive`",
            "`schema_location` of source `lines` is `/srv/shop/schemas`",
        ],
    ),
    "dead letters by default": (
        REMOTE,
        "pipeline: p\nsources:\n  ▶lines: {type: files, path: hdfs://n/in, format: {type: json, schema: n INT},"
        " on_bad_record: dead_letter}\nsinks: {out: {of: lines, type: console}}\n",
        ["the folder of the dead letters of `lines` is `/srv/shop/dead_letters/p/lines`"],
    ),
    "dead letters as declared": (
        REMOTE,
        "pipeline: p\nsources:\n  lines: {type: files, path: hdfs://n/in, format: {type: json, schema: n INT},"
        " on_bad_record: dead_letter}\nsinks: {out: {of: lines, type: console}}\n"
        "dead_letters: {type: delta, path: ▶bad}\n",
        ["the folder of the dead letters of `lines` is `/srv/shop/bad/lines`"],
    ),
    "Delta": (
        REMOTE,
        "pipeline: p\nsources: {a: {type: delta, path: ▶in}}\nsinks: {out: {of: a, type: delta, path: ▶out}}\n",
        [
            "`path` of source `a` is `/srv/shop/in`",
            "`path` of sink `out` is `/srv/shop/out`",
        ],
    ),
    "any format of Spark": (
        REMOTE,
        "pipeline: p\nsources: {a: {type: spark, format: text, path: ▶in}}\nsinks:\n"
        "  out: {of: a, type: spark, format: x, spark_options: {PATH: ▶/out, side: '▶file:/side', other: /etc}}\n",
        [
            "`path` of source `a` is `/srv/shop/in`",
            "`spark_options.PATH` of sink `out` is `/out`",
            "`spark_options.side` of sink `out` is `/side`",
        ],
    ),
    "catalog with a local warehouse": (
        f"{REMOTE}catalogs: {{lake: {{type: iceberg, warehouse: ▶lake}}, far: {{type: iceberg, warehouse: hdfs://n/w}}}}\n",
        f"{RATE}sinks:\n  a: {{of: ticks, type: iceberg, table: lake.shop.t}}\n"
        "  b: {of: ticks, type: iceberg, table: far.shop.t}\n",
        ["the warehouse of table `lake.shop.t` of sink `a` is `/srv/shop/lake`"],
    ),
    "Spark's own warehouse": (
        REMOTE,
        f"{RATE}sinks:\n  a: {{of: ticks, type: table, table: ▶t}}\n"
        "  b: {of: ticks, type: table, table: shop.t, path: hdfs://n/t}\n",
        ["the warehouse of table `t` of sink `a` is `/srv/shop/.penstock/warehouse`"],
    ),
    "a warehouse by its setting": (
        f"{CLUSTER[:-2]}, spark.sql.warehouse.dir: ▶/w}}\nstorage: hdfs://n/s\n",
        "pipeline: p\nsources: {t: {type: table, table: shop.t}}\nsinks: {out: {of: t, type: console}}\n",
        ["the warehouse of table `shop.t` of source `t` is `/w`"],
    ),
    "nothing is local": (
        REMOTE,
        "pipeline: p\nsources: {a: {type: files, path: 's3a://b/in', format: text}}\n"
        "sinks: {out: {of: a, type: kafka, servers: k, topic: t, ssl_truststore_location: /etc/trust}}\n",
        [],
    ),
    "all is shared": (
        f"{CLUSTER}shared_paths: [data/, 'file:/mnt/x', '${{UNSET_BY_ALL}}']\nstorage: data/storage\n",
        "pipeline: p\nsources: {a: {type: files, path: data/../data/in, format: text}}\n"
        "sinks: {out: {of: a, type: files, path: /mnt/x/out, format: text}}\n",
        [],
    ),
    "beside what is shared": (
        f"{CLUSTER}shared_paths: [data]\nstorage: ▶data2\n",
        f"{RATE}sinks: {{out: {{of: ticks, type: files, path: ▶data/../out, format: text}}}}\n",
        ["`storage` is `/srv/shop/data2`", "`path` of sink `out` is `/srv/shop/out`"],
    ),
}  # fmt: skip


def marks(text: str, file: str) -> list[str]:
    """The places that follow a ▶."""
    lines = enumerate(text.splitlines(), 1)
    # A mark moves what follows it in its line by one column.
    return [f"{file}:{n}:{at.start() + 1 - i}" for n, line in lines for i, at in enumerate(re.finditer("▶", line))]


@pytest.mark.parametrize("case", FOUND)
def test_each_local_path_is_found_at_its_key(case: str) -> None:
    settings, text, expected = FOUND[case]
    problems = problems_of(settings.replace("▶", ""), text.replace("▶", ""))
    assert [problem.message.partition(", ")[0] for problem in problems] == expected
    assert [str(problem.where) for problem in problems] == [*marks(settings, "penstock.yaml"), *marks(text, "p.yaml")]
    assert {problem.code for problem in problems} <= {"CLUSTER001"}


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.needs == "deployment"], ids=lambda rule: rule.code)
def test_the_examples_of_the_rule_are_as_wrong_and_as_right_as_they_say(rule: Rule) -> None:
    console = f"{RATE}sinks: {{out: {{of: ticks, type: console}}}}\n"
    assert [problem.code for problem in problems_of(rule.wrong, console)] == [rule.code]
    assert problems_of(rule.right, console) == []


def test_the_fix_is_an_edit() -> None:
    (problem,) = problems_of(f"{CLUSTER}storage: kept\n", FOUND["storage"][1])
    assert problem.fix == (
        "write `storage: hdfs://namenode:8020/storage`; or, if every machine mounts the folder under this path, write"
        " `shared_paths: [kept]` in penstock.yaml"
    )
    assert "`spark://master:7077` runs tasks on other machines" in problem.message


@pytest.mark.parametrize("case", [case for case in FOUND if FOUND[case][2]])
def test_nothing_is_refused_on_one_machine(case: str) -> None:
    settings, text = (one.replace("▶", "") for one in FOUND[case][:2])
    assert problems_of(settings.replace("spark://master:7077", "local[2]"), text) == []


HDFS = "name: shop\nspark: {spark.hadoop.fs.defaultFS: 'hdfs://n:8020'}\nstorage: hdfs://n:8020/s\n"
COPY = "pipeline: p\nsources: {a: {type: files, path: in, format: text}}\nsinks: {out: {of: a, type: console}}\n"


@pytest.mark.parametrize("master", ["local[*]", "yarn"])
def test_a_path_without_scheme_means_two_places_where_spark_looks_elsewhere(master: str) -> None:
    settings = HDFS.replace("{spark.hadoop", f"{{spark.master: '{master}', spark.hadoop")
    (problem,) = problems_of(settings, COPY)
    assert problem.code == "CLUSTER002"
    assert problem.fix == "write `hdfs://n:8020/srv/shop/in`, or `file:/srv/shop/in` for the local disk"
    assert str(problem.where) == "p.yaml:2:34"
    assert problems_of(settings, COPY.replace("path: in", "path: hdfs://n:8020/in")) == []
    local = problems_of(settings, COPY.replace("path: in", "path: 'file:/in'"))
    assert [found.code for found in local] == ([] if master != "yarn" else ["CLUSTER001"])


def test_the_master_may_be_a_reference_and_an_environment_may_choose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = (
        "name: shop\nspark: {spark.master: '${SPARK_MASTER:-local[*]}', spark.x: '${UNSET_BY_ALL}'}\n"
        "environments: {wide: {spark: {spark.master: yarn}, shared_paths: [storage]}}\n"
    )
    sink = f"{RATE}sinks: {{out: {{of: ticks, type: console}}}}\n"
    assert problems_of(settings, sink) == []
    monkeypatch.setenv("SPARK_MASTER", "spark://m:7077")
    assert [problem.code for problem in problems_of(settings, sink)] == ["CLUSTER001"]
    wide = project.from_document(parse(settings, project.FILE), ROOT, "wide")
    assert resolve.deployment(wide, {}).shared == ((0, "/srv/shop/storage"),)


def test_a_fast_check_and_a_whole_one_find_it_once(tmp_path: Path) -> None:
    one = project.from_document(parse(CLUSTER, project.FILE), tmp_path)
    texts = [f"{RATE}sinks: {{out: {{of: ticks, type: console}}}}\n".replace(": p\n", f": p{n}\n") for n in (1, 2)]
    pipelines = tuple(from_yaml.from_document(parse(text, "p.yaml"), tmp_path) for text in texts)
    for found in (judged_fast(Loaded(one, pipelines)), judge_all(Loaded(one, pipelines)).problems):
        assert [problem.code for problem in found] == ["CLUSTER001"]


def paths_in_catalog() -> Iterator[tuple[str, str]]:
    for parts in (catalog.sources(), catalog.sinks()):
        for name, part in parts.items():
            for key, field in part.model_fields.items():
                if is_path(field.annotation, field.metadata):
                    yield name, field.alias or key


def test_only_certificates_are_left_to_each_machine() -> None:
    """A new key with a path is refused on a cluster, unless somebody decides otherwise here."""
    assert {key for _, key in paths_in_catalog()} >= FILES_OF_EACH_MACHINE
    assert {key for _, key in paths_in_catalog()} - FILES_OF_EACH_MACHINE == {
        "path",
        "source_archive_dir",
        "base_path",
        "schema_location",
        "schema_tracking_location",
    }
    assert set(dead_letter_sinks()) == {"delta", "files", "kafka"}
