"""What every part of the catalog promises: it explains itself, its example loads, strange keys are refused."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from penstock import catalog
from penstock.pipeline import from_yaml, project
from penstock.pipeline.model import QuerySettings
from penstock.pipeline.pipeline_spec import PipelineSpec
from penstock.pipeline.project import Overlay, ProjectSpec
from penstock.pipeline.yaml_text import parse
from penstock.problems import UserError
from penstock.query.guarantees import Guarantee
from penstock.query.state_store import State
from penstock.query.watermark import Watermark
from penstock.sinks.sink import ALL_MODES, SinkSpec
from penstock.sources.source import SourceSpec
from penstock.spec import Part, Spec, spark_option_names

FRAUD = """
def counted(key, rows, state): ...


class Velocity(StatefulProcessor):
    def init(self, handle): ...
    def handleInputRows(self, key, rows, timerValues): ...
"""
TUPLES: dict[str, tuple[type[Part], ...]] = {
    "CONNECTIONS": catalog.CONNECTIONS,
    "SPARK_CATALOGS": catalog.SPARK_CATALOGS,
    "SOURCES": catalog.SOURCES,
    "STEPS": catalog.STEPS,
    "SINKS": catalog.SINKS,
}
PARTS = {f"{name.lower()}.{part.__name__}": (name, part) for name, parts in TUPLES.items() for part in parts}
GRAMMAR: tuple[type[Spec], ...] = (PipelineSpec, QuerySettings, Overlay, ProjectSpec, State, Watermark)

each_part = pytest.mark.parametrize(("kind", "part"), PARTS.values(), ids=PARTS)
each_source = pytest.mark.parametrize("source", catalog.SOURCES, ids=lambda part: part.__name__)
each_sink = pytest.mark.parametrize("sink", catalog.SINKS, ids=lambda part: part.__name__)


def word_of(part: type[Part]) -> str:
    return str(getattr(part, "key", None) or catalog.type_of(part))


def declared(kind: str, given: Any, root: Path) -> Spec:
    """The part as a user would declare it, in a whole pipeline or project."""
    data: dict[str, Any] = {"pipeline": "p", "sources": {"a": {"type": "rate"}}}
    data["sinks"] = {"o": {"of": "a", "type": "console"}}
    match kind:
        case "SOURCES":
            data["sources"] = {"a": given}
        case "STEPS":
            data["steps"] = {"s": given}
        case "SINKS":
            data["sinks"] = {"o": given}
        case "CONNECTIONS" | "SPARK_CATALOGS":
            key = "connections" if kind == "CONNECTIONS" else "catalogs"
            document = parse(yaml.safe_dump({"name": "p", key: {"x": given}}), "penstock.yaml")
            loaded = project.from_document(document, root)
            return (loaded.connections if kind == "CONNECTIONS" else loaded.catalogs)["x"]
    pipeline = from_yaml.from_document(parse(yaml.safe_dump(data), "pipeline.yaml"), root)
    nodes = {"SOURCES": pipeline.sources, "STEPS": pipeline.steps, "SINKS": pipeline.sinks}
    return nodes[kind][0].spec


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "steps.py").write_text("def unique_orders(orders): ...\n")
    (tmp_path / "fraud.py").write_text(FRAUD)
    return tmp_path


@pytest.mark.parametrize("name", TUPLES)
def test_parts_are_listed_in_the_order_of_their_words(name: str) -> None:
    words = [word_of(part) for part in TUPLES[name]]
    assert words == sorted(words)
    assert len(words) == len(set(words))


def test_the_catalog_finds_every_listed_part_by_its_word() -> None:
    found = {
        "CONNECTIONS": catalog.connections(),
        "SPARK_CATALOGS": catalog.spark_catalogs(),
        "SOURCES": catalog.sources(),
        "STEPS": catalog.steps(),
        "SINKS": catalog.sinks(),
    }
    for name, parts in TUPLES.items():
        assert [found[name][word_of(part)] for part in parts] == list(parts)


@each_part
def test_every_part_says_what_it_is(kind: str, part: type[Part]) -> None:
    own = part.__dict__.get("__doc__")
    assert own, f"{part.__name__} has no docstring of its own"
    first = inspect.cleandoc(own).splitlines()[0]
    assert first.endswith(".")


@each_part
def test_every_key_of_every_part_is_explained(kind: str, part: type[Part]) -> None:
    silent = [name for name, field in part.model_fields.items() if name != "type" and not field.description]
    assert silent == []


@pytest.mark.parametrize("spec", GRAMMAR, ids=lambda spec: spec.__name__)
def test_every_key_of_the_grammar_is_explained(spec: type[Spec]) -> None:
    assert spec.__doc__
    assert [name for name, field in spec.model_fields.items() if not field.description] == []


@each_part
def test_every_example_loads_as_the_part_that_it_shows(kind: str, part: type[Part], root: Path) -> None:
    assert type(declared(kind, yaml.safe_load(part.example), root)) is part


@each_part
def test_every_part_refuses_an_unknown_key(kind: str, part: type[Part], root: Path) -> None:
    given = yaml.safe_load(part.example) | {"no_such_key": 1}
    with pytest.raises(UserError) as raised:
        declared(kind, given, root)
    (problem,) = raised.value.problems
    assert problem.code == "SPEC007"
    assert "`no_such_key`" in problem.message


@each_part
def test_every_part_comes_back_from_what_was_given(kind: str, part: type[Part], root: Path) -> None:
    made = declared(kind, yaml.safe_load(part.example), root)
    assert part.model_validate(made.given()) == made


@each_part
def test_every_part_is_frozen(kind: str, part: type[Part], root: Path) -> None:
    made = declared(kind, yaml.safe_load(part.example), root)
    with pytest.raises(ValidationError):
        setattr(made, next(iter(part.model_fields)), "other")


@each_part
def test_no_two_keys_of_a_part_set_the_same_option(kind: str, part: type[Part]) -> None:
    options = [option.lower() for option in spark_option_names(part).values()]
    assert len(options) == len(set(options))


@pytest.mark.covers("source.replayable")
@each_source
def test_every_source_says_whether_it_can_be_replayed(source: type[SourceSpec]) -> None:
    doc = inspect.cleandoc(source.__doc__ or "")
    assert "Replayable: " in doc
    said = doc.partition("Replayable: ")[2]
    assert said.startswith(("yes", "no", "as ", "assumed"))
    assert said.startswith("no") is not source.capabilities.replayable


@pytest.mark.covers("sink.guarantees", "sink.modes")
@each_sink
def test_every_sink_states_its_guarantee_and_modes(sink: type[SinkSpec]) -> None:
    assert isinstance(sink.capabilities.guarantee, Guarantee)
    assert sink.capabilities.guarantee.promise in ("exactly-once", "at-least-once", "none")
    assert sink.capabilities.guarantee.reason
    assert sink.capabilities.output_modes
    assert sink.capabilities.output_modes <= ALL_MODES
