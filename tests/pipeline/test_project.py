"""`penstock.yaml`: the project and its environments."""

# ruff: noqa: E501 - a case in a table is one line

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from penstock.connections.kafka import Kafka
from penstock.lakes.catalogs import IcebergCatalog
from penstock.pipeline import project
from penstock.pipeline.project import Project
from penstock.pipeline.yaml_text import parse
from penstock.problems import UserError

ROOT = Path("/srv/shop")
SHOP = """\
name: shop
storage: storage
spark: {spark.master: "local[2]", spark.ui.enabled: false}
variables: {REGION: eu, LIMIT: 5}
secrets: [PG_URL]
listeners: [audit:Audit]
connections:
  broker: {type: kafka, servers: localhost:9092}
catalogs:
  lake: {type: iceberg, warehouse: lake}
environments:
  prod:
    storage: s3a://shop/penstock
    spark: {spark.master: "spark://big:7077"}
    variables: {LIMIT: 500}
    connections:
      broker: {servers: "kafka:9093", security_protocol: SASL_SSL}
      audit: {type: kafka, servers: audit:9092}
  dev: {}
"""


def load(text: str, environment: str | None = None) -> Project:
    return project.from_document(parse(text, "penstock.yaml"), ROOT, environment)


def test_a_file_becomes_a_project() -> None:
    shop = load(SHOP)
    assert (shop.name, shop.root, shop.storage, shop.environment) == ("shop", ROOT, "storage", None)
    assert shop.spark == {"spark.master": "local[2]", "spark.ui.enabled": False}
    assert shop.variables == {"REGION": "eu", "LIMIT": 5}
    assert (shop.secrets, shop.listeners) == (("PG_URL",), ("audit:Audit",))
    assert shop.connections == {"broker": Kafka(servers="localhost:9092")}
    assert shop.catalogs == {"lake": IcebergCatalog(warehouse="lake")}
    assert shop.local_folder == ROOT / ".penstock"
    assert shop.absolute("in") == "/srv/shop/in"


def test_an_environment_changes_only_what_it_names() -> None:
    shop = load(SHOP, "prod")
    assert (shop.environment, shop.storage) == ("prod", "s3a://shop/penstock")
    assert shop.spark == {"spark.master": "spark://big:7077", "spark.ui.enabled": False}
    assert shop.variables == {"REGION": "eu", "LIMIT": 500}
    assert shop.connections == {
        "broker": Kafka(servers="kafka:9093", security_protocol="SASL_SSL"),
        "audit": Kafka(servers="audit:9092"),
    }
    assert shop.catalogs == load(SHOP).catalogs
    assert shop.secrets == ("PG_URL",)


def test_an_empty_environment_changes_nothing_but_its_name() -> None:
    plain, dev = load(SHOP), load(SHOP, "dev")
    assert dev.environment == "dev"
    assert (dev.storage, dev.spark, dev.connections) == (plain.storage, plain.spark, plain.connections)


def test_a_value_of_an_environment_has_its_own_place() -> None:
    assert str(load(SHOP).origin.at("storage")) == "penstock.yaml:2:10"
    assert str(load(SHOP, "prod").origin.at("storage")) == "penstock.yaml:13:14"
    assert str(load(SHOP, "prod").origin.at("connections", "broker", "servers")) == "penstock.yaml:17:26"


def test_the_least_project_is_a_name() -> None:
    least = load("name: least")
    assert (least.storage, least.spark, least.connections, least.environment) == ("storage", {}, {}, None)
    assert project.bare(ROOT).name == "shop"


@pytest.mark.parametrize(
    ("code", "marked", "environment", "said"),
    [
        pytest.param("SPEC008", "▶storage: x\n", None, "`name` is missing", id="no name"),
        pytest.param("SPEC009", "name: ▶my shop\n", None, "`name`", id="name with a space"),
        pytest.param("SPEC009", "name: ▶${NAME}\n", None, "cannot be a ${reference}", id="reference as name"),
        pytest.param("SPEC007", "name: p\n▶stroage: x\n", None, "did you mean `storage`?", id="misspelled key"),
        pytest.param("SPEC009", "▶[]\n", None, "is not a project", id="list"),
        pytest.param("SPEC009", "name: p\nspark: ▶[a]\n", None, "`spark`", id="list of settings"),
        pytest.param("SPEC009", "name: p\nspark: {a: ▶[b]}\n", None, "`a`", id="list as a setting"),
        pytest.param("SPEC009", "name: p\nvariables: {A: ▶null}\n", None, "`A`", id="null as a variable"),
        pytest.param("SPEC009", "name: p\nvariables: ▶${A}\n", None, "`variables`", id="reference as variables"),
        pytest.param("SPEC009", "name: p\nsecrets: ▶PASSWORD\n", None, "`secrets`", id="word as secrets"),
        pytest.param("SPEC009", "name: p\nenvironments: ▶${E}\n", None, "`environments`", id="reference as environments"),
        pytest.param("SPEC010", "name: p\nconnections: {b: {type: ▶kafak}}\n", None, "did you mean `kafka`?", id="connection"),
        pytest.param("SPEC008", "name: p\nconnections: {b: ▶{type: kafka}}\n", None, "`servers` is missing", id="no servers"),
        pytest.param("SPEC010", "name: p\ncatalogs: {b: {type: ▶delta}}\n", None, "no catalog of type", id="catalog"),
        pytest.param("SPEC009", "name: p\nenvironments: {prod: ▶5}\n", None, "not an environment", id="number as environment"),
        pytest.param("SPEC007", "name: p\nenvironments: {prod: {▶name: q}}\n", None, "unknown key `name`", id="other name"),
        pytest.param(
            "SPEC009",
            "name: p\nconnections: {b: {type: kafka, servers: x}}\nenvironments: {prod: {connections: {b: {security_protocol: ▶TLS}}}}\n",
            None,
            "`security_protocol`",
            id="wrong value in an environment that was not chosen",
        ),
        pytest.param("PROJECT002", "name: p\n▶environments: {prod: {}}\n", "prd", "did you mean `prod`?", id="unknown environment"),
        pytest.param("PROJECT002", "▶name: p\n", "prod", "there is no environment `prod`", id="no environments"),
        pytest.param("SPEC002", "▶", None, "is empty", id="empty"),
        pytest.param("SPEC004", "name: p\n▶name: q\n", None, "stands twice", id="twice"),
    ],
)  # fmt: skip
def test_one_mistake_gives_one_problem_at_its_place(code: str, marked: str, environment: str | None, said: str) -> None:
    before, _, after = marked.partition("▶")
    with pytest.raises(UserError) as raised:
        load(before + after, environment)
    (problem,) = raised.value.problems
    assert problem.code == code
    assert said in problem.message
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    assert str(problem.where) == f"penstock.yaml:{line}:{column}"


def test_a_project_without_its_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        project.load(tmp_path)
    assert raised.value.problems[0].code == "SPEC001"


KEYS = ["name", "storage", "spark", "variables", "connections", "catalogs", "environments", "secrets", "listeners"]
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["${X}", "p"])
NESTED = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from([*KEYS, "type", "p", "b"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(KEYS), NESTED), st.sampled_from([None, "p", "b"]))
def test_any_data_is_a_project_or_problems(data: dict[str, Any], environment: str | None) -> None:
    text = yaml.safe_dump({"name": "p", **data}, allow_unicode=True)
    check_text(text, environment)


@given(st.text())
def test_any_text_is_a_project_or_problems(text: str) -> None:
    check_text(text)


def check_text(text: str, environment: str | None = None) -> None:
    """The outcome is a project or Problems, never another exception."""
    try:
        load(text, environment)
        return
    except UserError as error:
        problems = error.problems
    assert problems
    for problem in problems:
        assert problem.code
        assert problem.message
        assert problem.fix
        assert problem.where is not None
        assert problem.where.file == "penstock.yaml"
