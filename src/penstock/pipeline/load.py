"""From a folder to its project and pipelines."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from pydantic import ValidationError

from penstock.pipeline import from_yaml, project
from penstock.pipeline.from_python import Builder
from penstock.pipeline.model import Pipeline
from penstock.pipeline.project import FILE, Project
from penstock.pipeline.spec_problems import at_python
from penstock.problems import Problem, UserError, Where, did_you_mean

FOLDER = "pipelines"
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class Loaded:
    """A project with the pipelines that could be read, and what is wrong with the others."""

    project: Project
    pipelines: tuple[Pipeline, ...]
    problems: tuple[Problem, ...] = ()
    others: tuple[Pipeline, ...] = ()
    """Pipelines of the project that were not asked for: they may still be in the way of those that were."""


def load(start: Path, selection: Sequence[str] = (), environment: str | None = None) -> Loaded:
    """The pipelines named in `selection`, by name or by file; all of the project's by default. Raises UserError."""
    files = [start / item for item in selection if _is_file_name(item)]
    names = [item for item in selection if not _is_file_name(item)]
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
    if not selection:
        problems = [*chain.from_iterable(wrong.values()), *_twice(pipelines)]
        if not pipelines and not problems:
            raise UserError(
                Problem("PROJECT003", f"the project has no pipelines in `{FOLDER}/`",
                        f"write one as `{FOLDER}/<name>.yaml`", chosen.origin.where)
            )  # fmt: skip
        return Loaded(chosen, tuple(pipelines), tuple(problems))
    wanted = [pipeline for file in asked for pipeline in found.get(file, ())]
    wanted += _named(names, pipelines, tuple(chain.from_iterable(wrong.values())))
    # What is wrong with a file that was not asked for is told when it is asked for.
    problems = [problem for file in asked for problem in wrong.get(file, ())]
    named = {pipeline.name for pipeline in wanted}
    problems += _twice([pipeline for pipeline in pipelines if pipeline.name in named])
    others = tuple(pipeline for pipeline in pipelines if not any(pipeline is one for one in wanted))
    return Loaded(chosen, tuple(wanted), tuple(problems), others)


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
        if file.suffix in (*_YAML, ".py") and file.is_file() and "__pycache__" not in file.parts:
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
        raise at_python(_place_in(error, file, shown), error, error.title) from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever the user's module raises is the user's to mend
        message = f"`{shown}` fails when it is imported: {type(error).__name__}: {error}"
        raise UserError(Problem("SPEC014", message, "mend the module", _place_in(error, file, shown))) from None
    found = {id(value): value for value in vars(module).values() if isinstance(value, Builder)}
    return list(found.values())


def use_modules_of(root: Path) -> None:
    """Puts the project's modules on the path, and forgets those of the same name from another project."""
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    for name, module in list(sys.modules.items()):
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


def _named(names: Sequence[str], pipelines: Sequence[Pipeline], wrong: tuple[Problem, ...]) -> list[Pipeline]:
    known = {pipeline.name: pipeline for pipeline in pipelines}
    for name in names:
        if name not in known:
            # A pipeline that could not be read has no name; its own Problems say more than "there is none".
            raise UserError(
                wrong
                or Problem("PROJECT004", f"there is no pipeline `{name}`{did_you_mean(name, known)}",
                           f"name one of: {', '.join(known) or 'none is declared'}")
            )  # fmt: skip
    return [known[name] for name in dict.fromkeys(names)]


def _absolute(path: Path) -> Path:
    """Without following links: a linked file belongs to the folder that it is seen in."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - Path.absolute() keeps `..`
