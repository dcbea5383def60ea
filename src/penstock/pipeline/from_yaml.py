"""A pipeline from YAML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from penstock import catalog
from penstock.dead_letters.leaving import dead_letter_sinks, with_dead_letters
from penstock.notation.paths import leaves
from penstock.pipeline.model import Origin, Pipeline, QuerySettings, Sink, Source, Step
from penstock.pipeline.pipeline_spec import PipelineSpec, sql_step
from penstock.pipeline.spec_problems import missing_key, part, require_mapping, validated
from penstock.pipeline.yaml_text import Document, KeyPath, read_document
from penstock.problems import Fault, Problem, UserError, Where
from penstock.processors.ready_made import OPTIONS
from penstock.query.restarts import Level
from penstock.sinks.sink import SinkSpec
from penstock.spec_refusals import unknown_key
from penstock.transforms.pandas_state import PandasState
from penstock.transforms.process import Process
from penstock.transforms.processor_text import require_processor
from penstock.transforms.python import FunctionNotFound, Python, actions_in_source, parameters_in_source
from penstock.transforms.step import StepSpec

N = TypeVar("N")


def load(path: Path, root: Path) -> Pipeline:
    """The pipeline in a file of the project at `root`. Raises UserError with all that is wrong."""
    name = str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
    return from_document(read_document(path, name), root)


def from_document(document: Document, root: Path) -> Pipeline:
    if not isinstance(document.data, dict):
        raise UserError(Problem("SPEC009", "a pipeline is a mapping", "start with `pipeline: <name>`", document.at()))
    return _PipelineReader(document, root).pipeline()


class _PipelineReader:
    """Reads node by node and gathers Problems, so that one run shows all of them."""

    def __init__(self, document: Document, root: Path) -> None:
        self.document, self.root = document, root
        self.problems: list[Problem] = []

    def pipeline(self) -> Pipeline:
        data = self.document.data
        top: PipelineSpec | None = None
        with self.gathered():
            top = validated(PipelineSpec, data, self.document)
        sources = self.section("sources", self.source)
        steps = self.section("steps", lambda name, data: self.step(name, data, {*data_keys(self.document.data)}))
        sinks = self.section("sinks", self.sink)
        settings = self.section("queries", self.query_settings)
        place: SinkSpec | None = None
        with self.gathered():
            place = self.dead_letters()
        if self.problems or top is None:
            raise UserError(self.problems)
        read = Pipeline(
            name=top.pipeline,
            latency=top.latency,
            sources=tuple(sources),
            steps=tuple(steps),
            sinks=tuple(sinks),
            settings={name: value for name, value, _ in settings},
            listeners=top.listeners,
            description=top.description,
            functions=top.functions,
            dead_letters=place,
            level=Level(top.restarts, top.on_failure),
            tags=top.tags,
            origin=self.origin(()),
            settings_origins={name: origin for name, _, origin in settings},
        )
        return with_dead_letters(read)

    def dead_letters(self) -> SinkSpec | None:
        data = self.document.data.get("dead_letters")
        return data and part(data, self.document, ("dead_letters",), dead_letter_sinks(), "place for dead letters")

    def section(self, key: str, build: Callable[[str, Any], N]) -> list[N]:
        nodes: list[N] = []
        data = self.document.data.get(key)
        if not isinstance(data, dict):
            return nodes  # absent, or told by the top-level check
        for name, value in data.items():
            with self.gathered():
                nodes.append(build(name, value))
        return nodes

    @contextmanager
    def gathered(self) -> Iterator[None]:
        try:
            yield
        except UserError as error:
            self.problems += error.problems

    def source(self, name: str, data: Any) -> Source:
        path = ("sources", name)
        return Source(name, part(data, self.document, path, catalog.sources(), "source"), origin=self.origin(path))

    def sink(self, name: str, data: Any) -> Sink:
        path = ("sinks", name)
        require_mapping(data, self.document, path, "a sink")
        of, fix = data.get("of"), "name the step or source it is fed from: `of: <step>`"
        if of is None:
            raise UserError(missing_key("of", fix, data, self.document, path))
        if not isinstance(of, str):
            raise UserError(Problem("SPEC009", "`of` is not a name", fix, self.document.at(*path, "of")))
        rest = {key: value for key, value in data.items() if key != "of"}
        spec = part(rest, self.document, path, catalog.sinks(), "sink")
        return Sink(name, spec, data["of"], origin=self.origin(path))

    def step(self, name: str, data: Any, nodes: set[str]) -> Step:
        path = ("steps", name)
        require_mapping(data, self.document, path, "a step")
        kinds = [*catalog.steps(), "sql_file"]
        chosen = [key for key in kinds if key in data]
        if len(chosen) != 1:
            raise UserError(self.no_one_kind(name, data, chosen, kinds))
        origin = self.origin(path)
        match chosen[0]:
            case "sql_file":
                return self.step_in_file(name, data, nodes, origin)
            case "sql":
                spec = validated(catalog.steps()["sql"], data, self.document, path)
                return sql_step(name, spec, nodes, origin)
            case kind:
                spec = validated(catalog.steps()[kind], data, self.document, path)
                self.require_options(spec, path)
                return Step(name, spec, self.inputs_of(spec, origin), origin=origin)

    def step_in_file(self, name: str, data: dict[str, Any], nodes: set[str], origin: Origin) -> Step:
        where = self.document.at("steps", name, "sql_file")
        file = data["sql_file"]
        if not isinstance(file, str):
            raise UserError(Problem("SPEC009", "`sql_file` is not a path", "name a file of the project", where))
        if Path(file).is_absolute() or leaves(file):
            raise UserError(
                Problem("SPEC011", f"`{file}` lies outside the project", "keep SQL files inside the project", where)
            )
        try:
            text = (self.root / file).read_text(encoding="utf-8")
        except (OSError, ValueError):  # not there, not text, or no path at all
            raise UserError(
                Problem("SPEC001", f"the SQL file `{file}` cannot be read", "name a text file of the project", where)
            ) from None
        rest = {key: value for key, value in data.items() if key != "sql_file"} | {"sql": text}
        spec = validated(catalog.steps()["sql"], rest, self.document, ("steps", name))
        places = Document(None, file, {("sql",): Where(file, text=True)})
        return sql_step(name, spec, nodes, Origin(origin.where, places))

    def require_options(self, spec: StepSpec, path: KeyPath) -> None:
        """The options of a ready-made processor have a grammar of their own."""
        if isinstance(spec, Process) and spec.process.options_spec:
            validated(spec.process.options_spec, spec.process.options, self.document, (*path, *OPTIONS))

    def inputs_of(self, spec: StepSpec, origin: Origin) -> tuple[str, ...]:
        try:
            if isinstance(spec, PandasState):
                parameters_in_source(spec.pandas_state.with_, self.root)
            if isinstance(spec, Process) and not spec.process.is_ready_made:
                require_processor(spec.process.with_, spec.process.options, self.root)
            if not isinstance(spec, Python):
                return spec.inputs
            inputs = parameters_in_source(spec.python, self.root)
            self.require_no_actions(spec.python, set(inputs))
            return inputs
        except FunctionNotFound as error:
            fix = "name a function of a module in the project: `module:function`"
            place = ("pandas_state", "with") if isinstance(spec, PandasState) else ("python",)
            raise UserError(Problem("SPEC012", str(error), fix, origin.at(*place))) from None
        except Fault as fault:
            raise UserError(fault.at(origin.at(*fault.keys))) from None

    def require_no_actions(self, name: str, inputs: set[str]) -> None:
        """A step's function cannot count or show a stream; of a static table it may."""
        sources = self.document.data.get("sources")
        written = sources if isinstance(sources, dict) else {}
        streams = {one for one in inputs if isinstance(written.get(one), dict) and written[one].get("read") != "static"}
        for file, line, call in actions_in_source(name, self.root, streams):
            message = f"`{name}` calls `{call}()` on a stream, which has no end to wait for"
            fix = "return the rows; look at them with `penstock show`, or count them with an aggregation"
            place = str(file.relative_to(self.root))
            self.problems.append(Problem("STEP001", message, fix, Where(place, line)))

    def query_settings(self, name: str, data: Any) -> tuple[str, QuerySettings, Origin]:
        path = ("queries", name)
        require_mapping(data, self.document, path, "a query")
        return name, validated(QuerySettings, data, self.document, path), self.origin(path)

    def no_one_kind(self, name: str, data: dict[str, Any], chosen: list[str], kinds: list[str]) -> Problem:
        listed = ", ".join(f"`{kind}`" for kind in kinds)
        if chosen:
            both = " and ".join(f"`{kind}`" for kind in chosen)
            return Problem(
                "SPEC013", f"step `{name}` has {both}", "keep one", self.document.key_at("steps", name, chosen[1])
            )
        strange = [key for key in data if key not in StepSpec.model_fields]
        if strange:
            message, _ = unknown_key(strange[0], [*kinds, *StepSpec.model_fields])
            return Problem(
                "SPEC007", message, f"a step has one of {listed}", self.document.key_at("steps", name, strange[0])
            )
        return Problem(
            "SPEC008", f"step `{name}` says nothing to do", f"add one of {listed}", self.document.at("steps", name)
        )

    def origin(self, path: KeyPath) -> Origin:
        return Origin(self.document.key_at(*path), self.document, path)


def data_keys(data: dict[str, Any]) -> list[str]:
    """The names that a step can read from."""
    sections = [data.get(key) for key in ("sources", "steps")]
    return [name for section in sections if isinstance(section, dict) for name in section]
