"""From a folder to its project and pipelines."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
    root = find_root(files[0].resolve().parent if files else start)
    if root is None:
        if not files:
            raise UserError(
                Problem("PROJECT001", f"there is no `{FILE}` here or in a folder above",
                        "go to a project's folder, make one with `penstock init DIR`, or name a pipeline's file")
            )  # fmt: skip
        root = files[0].resolve().parent
        chosen = project.bare(root)
    else:
        chosen = project.load(root, environment)

    listed = [file.resolve() for file in files] or sorted(_pipeline_files(root))
    pipelines: list[Pipeline] = []
    problems: list[Problem] = []
    for file in listed:
        try:
            pipelines += read(file, root)
        except UserError as error:
            problems += error.problems
    problems += _twice(pipelines)
    if not pipelines and not problems:
        raise UserError(
            Problem("PROJECT003", f"the project has no pipelines in `{FOLDER}/`",
                    f"write one as `{FOLDER}/<name>.yaml`", chosen.origin.where)
        )  # fmt: skip
    wanted = _selected(pipelines, names, problems)
    others = tuple(pipeline for pipeline in pipelines if pipeline not in wanted)
    return Loaded(chosen, wanted, tuple(problems), others)


def find_root(start: Path) -> Path | None:
    """The nearest folder, from `start` upwards, that has a `penstock.yaml`."""
    start = start.resolve()
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
        if file and ours.is_file() and Path(file) != ours:
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


def _selected(pipelines: Sequence[Pipeline], names: Sequence[str], problems: Sequence[Problem]) -> tuple[Pipeline, ...]:
    if not names:
        return tuple(pipelines)
    known = {pipeline.name: pipeline for pipeline in pipelines}
    for name in names:
        if name not in known:
            # A pipeline that could not be read has no name; its own Problems say more than "there is none".
            raise UserError(
                problems
                or Problem("PROJECT004", f"there is no pipeline `{name}`{did_you_mean(name, known)}",
                           f"name one of: {', '.join(known) or 'none is declared'}")
            )  # fmt: skip
    return tuple(known[name] for name in dict.fromkeys(names))
