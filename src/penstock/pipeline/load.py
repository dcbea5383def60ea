"""From a folder to its project and pipelines."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from penstock.graph.project_graph import NodeName, ProjectGraph, graph_of
from penstock.graph.selectors import Selector, parsed, require_queries, select
from penstock.pipeline import from_yaml, project
from penstock.pipeline.from_python import Builder
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import FILE, Project
from penstock.problems import Problem, UserError, Where
from penstock.spec_refusals import at_python

FOLDER = "pipelines"
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Loaded:
    """A project with the pipelines that could be read, and what is wrong with the others."""

    project: Project
    pipelines: tuple[Pipeline, ...]
    problems: tuple[Problem, ...] = ()
    others: tuple[Pipeline, ...] = ()
    """Pipelines of the project that were not asked for: they may still feed, or be in the way of, those that were."""
    chosen: Mapping[str, frozenset[str]] | None = None
    """By pipeline, the queries that were asked for; None: all of them."""
    nodes: tuple[NodeName, ...] = ()
    """The sources and steps that were asked for, where there was a selection."""

    @cached_property
    def graph(self) -> ProjectGraph:
        """All pipelines of the project, and what joins them."""
        return graph_of((*self.pipelines, *self.others), self.project, self.project.values(os.environ))


def load(start: Path, selection: Sequence[str] = (), environment: str | None = None, *, to_run: bool = True) -> Loaded:
    """What `selection` means: pipelines, queries, files and tags, with `+` for what is around them. All by default.

    With `to_run` a selection without a query is a mistake. Raises UserError.
    """
    selectors = [parsed(item) for item in selection]
    files = [start / one.base for one in selectors if _is_file_name(one.base)]
    beside = _absolute(files[0]).parent if files else start
    root = find_root(beside if beside.is_dir() or not files else start)
    if root is None:
        if not files:
            raise UserError(
                Problem("PROJECT001", f"there is no `{FILE}` here or in a folder above",
                        "go to a project's folder, make one with `penstock init DIR`, or name a pipeline's file")
            )  # fmt: skip
        root = _absolute(files[0]).parent
        chosen = project.bare(root)
    else:
        chosen = project.load(root, environment)

    asked = [_absolute(file) for file in files]
    found: dict[Path, list[Pipeline]] = {}
    wrong: dict[Path, tuple[Problem, ...]] = {}
    for file in dict.fromkeys((*asked, *sorted(_pipeline_files(root)))):
        try:
            found[file] = read(file, root)
        except UserError as error:
            wrong[file] = error.problems
    pipelines = [pipeline for file in found for pipeline in found[file]]
    all_wrong = tuple(chain.from_iterable(wrong.values()))
    if not selection:
        problems = [*all_wrong, *_twice(pipelines)]
        if not pipelines and not problems:
            raise UserError(
                Problem("PROJECT003", f"the project has no pipelines in `{FOLDER}/`",
                        f"write one as `{FOLDER}/<name>.yaml`", chosen.origin.where)
            )  # fmt: skip
        return Loaded(chosen, tuple(pipelines), tuple(problems))
    # What is wrong with a file that was not asked for is told when it is asked for.
    around = any(selector.looks_around for selector in selectors)
    problems = [*all_wrong] if around else [problem for file in asked for problem in wrong.get(file, ())]
    by_file = {one.base: found.get(_absolute(start / one.base), []) for one in selectors if _is_file_name(one.base)}
    everything = Loaded(chosen, tuple(pipelines))
    known, unknown = _known(everything.graph, selectors, by_file, all_wrong)
    problems = [*dict.fromkeys((*problems, *unknown))]
    selected = select(everything.graph, known, by_file)
    if to_run and not problems:
        require_queries(everything.graph, known, selected)
    named = list(dict.fromkeys(pipeline for pipeline, _ in selected.nodes))
    problems += _twice([pipeline for pipeline in pipelines if pipeline.name in named])
    wanted = sorted((one for one in pipelines if one.name in named), key=lambda one: named.index(one.name))
    others = tuple(pipeline for pipeline in pipelines if pipeline.name not in named)
    return Loaded(chosen, tuple(wanted), tuple(problems), others, selected.queries, selected.nodes)


def _known(
    graph: ProjectGraph,
    selectors: Sequence[Selector],
    files: Mapping[str, Sequence[Pipeline]],
    wrong: tuple[Problem, ...],
) -> tuple[list[Selector], list[Problem]]:
    """The selectors that mean something, and why others do not: the rest is still judged. UserError if none does."""
    known: list[Selector] = []
    unknown: list[Problem] = []
    for selector in selectors:
        try:
            select(graph, [selector], files)
            known.append(selector)
        except UserError as error:
            # A pipeline that could not be read has no name; its own Problems say more than "there is none".
            unknown += wrong or error.problems
    if unknown and not known:
        raise UserError(tuple(dict.fromkeys(unknown)))
    return known, unknown


def find_root(start: Path) -> Path | None:
    """The nearest folder, from `start` upwards, that has a `penstock.yaml`. Raises UserError."""
    if not start.is_dir():
        raise UserError(Problem("PROJECT008", f"there is no folder `{start}`", "name one that exists"))
    start = _absolute(start)
    return next((folder for folder in (start, *start.parents) if (folder / FILE).is_file()), None)


def read(file: Path, root: Path) -> list[Pipeline]:
    """The pipelines in one file. Raises UserError."""
    if file.suffix in _YAML:
        return [from_yaml.load(file, root)]
    return [builder.build() for builder in _builders_in(file, root)]


def _is_file_name(item: str) -> bool:
    return item.endswith((*_YAML, ".py"))


def _pipeline_files(root: Path) -> Iterator[Path]:
    for file in (root / FOLDER).rglob("*"):
        # A link that leads nowhere is a pipeline that would be left out in silence.
        is_file = file.is_file() or (file.is_symlink() and not file.exists())
        if file.suffix in (*_YAML, ".py") and is_file and "__pycache__" not in file.parts:
            yield file


def _builders_in(file: Path, root: Path) -> list[Builder]:
    """The pipelines that a module makes. It is imported under its name in the project, as the workers will."""
    shown = str(file.relative_to(root)) if file.is_relative_to(root) else str(file)
    if not file.is_file():
        raise UserError(
            Problem("SPEC001", f"`{shown}` cannot be read: no such file", "name a file that exists", Where(shown))
        )
    name = ".".join(file.relative_to(root).with_suffix("").parts) if file.is_relative_to(root) else file.stem
    if name in sys.stdlib_module_names:
        message = f"`{shown}` has the name of a module of Python itself"
        raise UserError(Problem("SPEC014", message, "rename the file", Where(shown)))
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise UserError(Problem("SPEC001", f"`{shown}` cannot be imported", "name a Python file", Where(shown)))
    module = importlib.util.module_from_spec(spec)
    use_modules_of(root)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except UserError:
        raise
    except ValidationError as error:
        raise at_python(_place_in(error, file, shown), error) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's module raises is the user's to mend
        message = f"`{shown}` fails when it is imported: {type(error).__name__}: {error}"
        raise UserError(Problem("SPEC014", message, "mend the module", _place_in(error, file, shown))) from None
    found = {id(value): value for value in vars(module).values() if isinstance(value, Builder)}
    return list(found.values())


def use_modules_of(root: Path) -> None:
    """Puts the project's modules on the path, and forgets those of the same name from another project."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    here = {entry.name.removesuffix(".py") for entry in (root.iterdir() if root.is_dir() else ())}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in here:
            continue
        file = getattr(module, "__file__", None)
        ours = root / Path(*name.split(".")).with_suffix(".py")
        installed = name in sys.stdlib_module_names or (file and "site-packages" in Path(file).parts)
        if file and not installed and ours.is_file() and Path(file) != ours:
            del sys.modules[name]


def _place_in(error: BaseException, file: Path, shown: str) -> Where:
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return Where(shown, error.lineno or 1, error.offset or 1)
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return Where(shown, (lines[-1] if lines else 1) or 1)


def _twice(pipelines: Sequence[Pipeline]) -> Iterator[Problem]:
    first: dict[str, Pipeline] = {}
    for pipeline in pipelines:
        other = first.setdefault(pipeline.name, pipeline)
        if other is not pipeline:
            yield Problem("GRAPH003", f"the pipeline `{pipeline.name}` stands in {other.origin.where.file} too",
                          "rename one of the two", pipeline.origin.at("pipeline"))  # fmt: skip


def _absolute(path: Path) -> Path:
    """Without following links: a linked file belongs to the folder that it is seen in."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`
