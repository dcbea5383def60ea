"""The base of all that a user writes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import Field, ValidationError

from penstock import sinks, sources
from penstock.notation.durations import Duration
from penstock.notation.paths import PathText
from penstock.query.triggers import AnyTrigger
from penstock.query.watermark import Watermark
from penstock.spec import (
    Name,
    Option,
    Part,
    Spec,
    WithSparkOptions,
    camel,
    given_options,
    spark_option,
    spark_option_names,
    to_option,
)


class Everything(Spec):
    text: str = "x"
    optional: int | None = None
    number: float = 1.0
    flag: bool = False
    bounded: Annotated[int, Field(gt=0)] = 1
    duration: Duration = "1 second"
    path: PathText | None = None
    name: Name = "x"
    former: Name | None = None
    choice: Literal["a", "b"] = "a"
    maybe: Literal["a", "b"] | None = None
    inner: Watermark | None = None
    trigger: AnyTrigger | None = None
    listed: tuple[str, ...] = ()
    mapped: dict[str, Option] = Field(default_factory=dict)
    anything: dict[str, Any] = Field(default_factory=dict)


@pytest.mark.parametrize("field", ["text", "optional", "number", "flag", "bounded", "duration", "path"])
def test_a_plain_value_may_be_a_reference(field: str) -> None:
    spec = Everything.model_validate({field: "${X:-5}"})
    assert getattr(spec, field) == "${X:-5}"
    assert spec.given() == {field: "${X:-5}"}


@pytest.mark.parametrize(
    "field", ["name", "former", "choice", "maybe", "inner", "trigger", "listed", "mapped", "anything"]
)
def test_what_shapes_the_pipeline_may_not_be_a_reference(field: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Everything.model_validate({field: "${X}"})
    (error,) = raised.value.errors()
    assert error["type"] == "reference"
    assert error["loc"] == (field,)


def test_a_value_inside_a_mapping_or_list_may_be_a_reference() -> None:
    given = {"mapped": {"a": "${X}"}, "listed": ["${Y}"], "inner": {"column": "${C}", "delay": "${D}"}}
    assert Everything.model_validate(given).given() == given


def test_resolved_values_are_judged() -> None:
    resolved = {"resolved": True}
    assert Everything.model_validate({"optional": "5"}, context=resolved).optional == 5
    with pytest.raises(ValidationError):
        Everything.model_validate({"optional": "${X}"}, context=resolved)


def test_a_spec_is_frozen_and_refuses_unknown_keys() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Everything().text = "y"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        Everything.model_validate({"txt": "y"})


@pytest.mark.parametrize("value", [True, 5, 1.5, "x", "${X}"])
def test_an_option_keeps_its_type(value: Any) -> None:
    kept = Everything.model_validate({"mapped": {"o": value}}).mapped["o"]
    assert (kept, type(kept)) == (value, type(value))


@pytest.mark.parametrize("value", [None, [1], {"a": 1}, b"x"])
def test_what_is_no_option_is_told_once(value: Any) -> None:
    with pytest.raises(ValidationError) as raised:
        Everything.model_validate({"mapped": {"o": value}})
    assert [error["loc"] for error in raised.value.errors()] == [("mapped", "o")]


class Reader(Part, WithSparkOptions):
    type: Literal["reader"] = "reader"
    max_rows: int | None = spark_option(None, "At most so many.")
    encoding: str = spark_option("utf-8", "Of the text.", name="charset")
    other: str = "not an option"


def test_options_have_sparks_names_and_only_given_ones_are_set() -> None:
    assert spark_option_names(Reader) == {"max_rows": "maxRows", "encoding": "charset"}
    assert given_options(Reader()) == {}
    assert given_options(Reader(max_rows=None, other="x")) == {}
    assert given_options(Reader(max_rows=5, encoding="latin-1", spark_options={"x.y": True, "z": 1})) == {
        "maxRows": "5",
        "charset": "latin-1",
        "x.y": "true",
        "z": "1",
    }


@pytest.mark.parametrize("option", ["maxRows", "MAXROWS", "charset"])
def test_an_option_with_a_key_of_its_own_is_refused_as_a_free_one(option: str) -> None:
    with pytest.raises(ValidationError, match="has a key of its own here"):
        Reader(spark_options={option: 5})


def test_the_type_of_a_part_is_given_however_it_is_made() -> None:
    assert Reader().given() == {"type": "reader"}
    assert Reader.model_validate({"type": "reader"}) == Reader()


def test_spells_names_and_values_as_spark_does() -> None:
    assert camel("max_files_per_trigger") == "maxFilesPerTrigger"
    assert [to_option(value) for value in (True, False, 5, 1.5, "X")] == ["true", "false", "5", "1.5", "X"]


def test_a_part_that_python_writes_wrong_is_problems_at_the_users_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    with pytest.raises(ValidationError) as raised:
        sources.Files(pth="in", format="text")
    wrong, place, fix = raised.value._render_traceback_()  # type: ignore[attr-defined]
    assert wrong == "error SPEC007  unknown key `pth` — did you mean `path`?"
    assert place.startswith("  tests/test_spec.py:")
    assert fix == "  fix: write `path`"


def test_what_is_wrong_with_a_secret_does_not_show_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValidationError) as raised:
        sources.Kafka(servers="h:1", topics=["t"], format="text", username="u", password=4711)
    assert "4711" not in "".join(raised.value._render_traceback_())  # type: ignore[attr-defined]


def test_a_part_reads_as_it_was_written_without_its_secrets() -> None:
    kafka = sources.Kafka(servers="h:1", topics=["t"], format="text", username="u", password="hunter2")
    assert repr(kafka) == (
        "Kafka(servers='h:1', username='u', password='••••••', topics=('t',), format=TextMessageRead())"
    )
    nested = sources.Spark(format="x", spark_options={"my.token": "hunter2"})
    assert "hunter2" not in repr(nested)
    assert "${PW}" in repr(kafka.model_copy(update={"password": "${PW}"}))
    written = sinks.Postgres(url="postgresql://u:hunter2@h/db", table="t")
    assert "hunter2" not in repr(written)
    assert "postgresql://u:••••••@h/db" in repr(written)
