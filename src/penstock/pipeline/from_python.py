"""A pipeline in Python. Inputs are the parameter names; nothing is global, so a module may hold several."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from penstock.dead_letters.bad_records import Expectation, OnBadRecord
from penstock.dead_letters.leaving import with_dead_letters
from penstock.notation.paths import shown
from penstock.pipeline.model import Origin, Pipeline, QuerySettings, Sink, Source, Step
from penstock.pipeline.pipeline_spec import PipelineSpec, sql_step
from penstock.problems import Problem, UserError, Where
from penstock.processors.ready_made import ReadyMade
from penstock.query.restarts import Level, OnFailure, Restarts
from penstock.query.triggers import Latency
from penstock.query.watermark import Watermark
from penstock.sinks.sink import SinkSpec
from penstock.sources.source import SourceSpec
from penstock.spec import Spec
from penstock.spec_refusals import at_python
from penstock.transforms.deduplicate import Deduplicate
from penstock.transforms.functions import Function, Kind
from penstock.transforms.pandas_state import PandasState
from penstock.transforms.process import Process
from penstock.transforms.python import Python, name_of, parameters
from penstock.transforms.sql import Sql

F = TypeVar("F", bound=Callable[..., Any])


class Builder:
    """Gathers sources, steps and sinks; `build()` gives the frozen pipeline."""

    def __init__(
        self,
        name: str,
        *,
        latency: Latency = "balanced",
        description: str = "",
        listeners: tuple[str, ...] = (),
        dead_letters: SinkSpec | None = None,
        on_failure: OnFailure | None = None,
        restarts: Restarts | dict[str, Any] | None = None,
        tags: Sequence[str] = (),
    ) -> None:
        self._origin = _caller()
        if dead_letters is not None:
            _require(dead_letters, SinkSpec, "`dead_letters`", "sinks", self._origin)
        self.dead_letters, self.on_failure, self.restarts = dead_letters, on_failure, restarts
        self.tags = tuple(tags)
        self._functions: dict[str, Function] = {}
        self.name, self.latency, self.description, self.listeners = name, latency, description, tuple(listeners)
        self._sources: dict[str, Source] = {}
        self._steps: dict[str, Step] = {}
        self._sinks: dict[str, Sink] = {}
        self._settings: dict[str, QuerySettings] = {}
        self._settings_origins: dict[str, Origin] = {}

    def source(self, name: str, spec: SourceSpec) -> None:
        """Names a place where rows come from."""
        origin = _caller()
        self._once(name, self._sources, "source", origin)
        _require(spec, SourceSpec, f"source `{name}`", "sources", origin)
        self._sources[name] = Source(name, spec, origin=origin)

    def function(
        self, name: str, python: str, *, returns: str, kind: Kind = "python", on_error: OnBadRecord | None = None
    ) -> None:
        """Makes `module:function` known to SQL steps; a row on which it raises is a bad record."""
        origin = _caller()
        self._once(name, self._functions, "function", origin)
        self._functions[name] = _made(Function, origin, python=python, returns=returns, kind=kind, on_error=on_error)

    def sql(
        self,
        name: str,
        sql: str,
        *,
        watermark: Watermark | dict[str, str] | None = None,
        expect: Mapping[str, Expectation | dict[str, str]] | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """A step in SQL, over the sources and steps that it names."""
        origin = _caller()
        self._once(name, self._steps, "step", origin)
        spec = _made(Sql, origin, sql=sql, watermark=watermark, expect=expect, tags=tags)
        self._steps[name] = Step(name, spec, (), origin=origin)

    def step(
        self,
        name: str | None = None,
        *,
        watermark: Watermark | dict[str, str] | None = None,
        expect: Mapping[str, Expectation | dict[str, str]] | None = None,
        tags: Sequence[str] | None = None,
    ) -> Callable[[F], F]:
        """A step in Python: the function's name, or `name`, is the step; its parameters are the inputs."""
        origin = _caller()

        def register(function: F) -> F:
            step = name or function.__name__
            self._once(step, self._steps, "step", origin)
            spec = _made(Python, origin, python=name_of(function), watermark=watermark, expect=expect, tags=tags)
            self._steps[step] = Step(step, spec, parameters(function), function, origin=origin)
            return function

        return register

    def deduplicate(
        self,
        name: str,
        *,
        of: str,
        keys: Sequence[str] = (),
        within_watermark: bool = False,
        watermark: Watermark | dict[str, str] | None = None,
        tags: Sequence[str] | None = None,
    ) -> None:
        """A step that takes duplicates out."""
        origin = _caller()
        self._once(name, self._steps, "step", origin)
        found = {"of": of, "keys": keys, "within_watermark": within_watermark}
        spec = _made(Deduplicate, origin, deduplicate=found, watermark=watermark, tags=tags)
        self._steps[name] = Step(name, spec, spec.inputs, origin=origin)

    def process(
        self,
        name: str,
        *,
        of: str,
        key: Sequence[str],
        with_: type | str,
        watermark: Watermark | dict[str, str] | None = None,
        tags: Sequence[str] | None = None,
        **keys: Any,
    ) -> None:
        """A step with state: `with_` is the StatefulProcessor's class, or YAML's word for it. Other keys are YAML's."""
        origin = _caller()
        self._once(name, self._steps, "step", origin)
        code, named = (with_, name_of(with_)) if isinstance(with_, type) else (None, with_)
        processing = {"of": of, "key": key, "with": named} | keys
        spec = _made(Process, origin, process=processing, watermark=watermark, tags=tags)
        if spec.process.options_spec:
            _made(spec.process.options_spec, origin, **spec.process.options)
        self._steps[name] = Step(name, spec, spec.inputs, code, origin=origin)

    def pandas_state(
        self,
        name: str,
        *,
        of: str,
        key: Sequence[str],
        with_: Callable[..., Any] | str,
        output: str,
        state: str,
        watermark: Watermark | dict[str, str] | None = None,
        tags: Sequence[str] | None = None,
        **keys: Any,
    ) -> None:
        """A step with state, the older way: `with_` is the function, or YAML's word for it. Other keys are YAML's."""
        origin = _caller()
        self._once(name, self._steps, "step", origin)
        code, named = (None, with_) if isinstance(with_, str) else (with_, name_of(with_))
        grouping = {"of": of, "key": key, "with": named, "output": output, "state": state} | keys
        spec = _made(PandasState, origin, pandas_state=grouping, watermark=watermark, tags=tags)
        self._steps[name] = Step(name, spec, spec.inputs, code, origin=origin)

    def sink(self, name: str, spec: SinkSpec, *, of: str) -> None:
        """Names a place where the rows of `of` go."""
        origin = _caller()
        self._once(name, self._sinks, "sink", origin)
        _require(spec, SinkSpec, f"sink `{name}`", "sinks", origin)
        self._sinks[name] = Sink(name, spec, of, origin=origin)

    def query(self, name: str, **settings: Any) -> None:
        """What differs from the defaults for the query of step `name`: the keys of `queries:` in YAML."""
        origin = _caller()
        self._once(name, self._settings, "query", origin)
        self._settings[name] = _made(QuerySettings, origin, **settings)
        self._settings_origins[name] = origin

    def build(self) -> Pipeline:
        """The frozen pipeline, equal to that of the same text in YAML. Raises UserError."""
        top = _made(
            PipelineSpec,
            self._origin,
            pipeline=self.name,
            latency=self.latency,
            description=self.description,
            listeners=self.listeners,
            on_failure=self.on_failure,
            restarts=self.restarts,
            tags=self.tags,
            sources=dict(self._sources),
            sinks=dict(self._sinks),
        )
        nodes = (*self._sources, *self._steps)
        steps = [
            # Only now are all names known that a SELECT may read from.
            sql_step(step.name, step.spec, nodes, step.origin) if isinstance(step.spec, Sql) else step
            for step in self._steps.values()
        ]
        built = Pipeline(
            name=top.pipeline,
            latency=top.latency,
            sources=tuple(self._sources.values()),
            steps=tuple(steps),
            sinks=tuple(self._sinks.values()),
            settings=dict(self._settings),
            listeners=top.listeners,
            description=top.description,
            functions=dict(self._functions),
            dead_letters=self.dead_letters,
            level=Level(top.restarts, top.on_failure),
            tags=top.tags,
            origin=self._origin,
            settings_origins=dict(self._settings_origins),
        )
        return with_dead_letters(built)

    @staticmethod
    def _once(name: str, taken: dict[str, Any], noun: str, origin: Origin) -> None:
        if name in taken:
            raise UserError(
                Problem("GRAPH003", f"the {noun} `{name}` stands twice", "rename one of the two", origin.where)
            )


def _require(spec: object, kind: type[Spec], what: str, module: str, origin: Origin) -> None:
    if not isinstance(spec, kind):
        fix = f"make it with a class of `penstock.{module}`"
        raise UserError(Problem("SPEC009", f"{what} is a {type(spec).__name__}", fix, origin.where))


M = TypeVar("M", Sql, Deduplicate, PandasState, Process, Python, QuerySettings, PipelineSpec, Function, ReadyMade)


def _made(model: type[M], origin: Origin, **values: Any) -> M:
    try:
        return model(**{key: value for key, value in values.items() if value is not None})
    except ValidationError as error:
        raise at_python(origin.where, error) from None


def _caller() -> Origin:
    """The place in the user's file that called into this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    return Origin(Where(shown(frame.f_code.co_filename), frame.f_lineno))
