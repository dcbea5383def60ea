"""From what is written to what Spark gets: references resolved, paths absolute, connections filled in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from penstock.facts.deployment import Deployment
from penstock.notation import references
from penstock.notation.masters import MASTER
from penstock.notation.paths import absolute, is_path
from penstock.pipeline.model import Origin, Pipeline, Query, Sink
from penstock.pipeline.project import Project
from penstock.problems import Problem, UserError
from penstock.query.restarts import Level, Policy, merged_policy
from penstock.query.state_store import State
from penstock.spec import Spec, to_option
from penstock.storage.storage import join

S = TypeVar("S", bound=Spec)
FILE_SYSTEM = "spark.hadoop.fs.defaultFS"


def environment(project: Project, process: Mapping[str, str]) -> dict[str, str]:
    """The values of references: the process's environment, then the project's `variables`."""
    return project.values(process)


def mask(project: Project, process: Mapping[str, str]) -> references.Mask:
    """Hides the project's secrets in any text."""
    return references.Mask(project.secrets, environment(project, process))


@contextmanager
def masking(project: Project, process: Mapping[str, str]) -> Iterator[None]:
    """Hides secrets in the Problems of a UserError that passes: Spark may have put them into its words."""
    try:
        yield
    except UserError as error:
        raise UserError(masked(error.problems, project, process)) from None


def masked(problems: Iterable[Problem], project: Project, process: Mapping[str, str]) -> tuple[Problem, ...]:
    hide = mask(project, process)
    return tuple(replace(problem, message=hide(problem.message), fix=hide(problem.fix)) for problem in problems)


def pipeline(written: Pipeline, project: Project, process: Mapping[str, str]) -> Pipeline:
    """The pipeline as the engine builds it. Raises UserError with every reference that cannot be resolved."""
    environ = environment(project, process)
    problems: list[Problem] = []

    def resolved(node: Any) -> Any:
        try:
            return replace(node, spec=_connected(spec(node.spec, node.origin, environ, project), project, environ))
        except UserError as error:
            problems.extend(error.problems)
            return node

    result = replace(
        written,
        sources=tuple(map(resolved, written.sources)),
        steps=tuple(map(resolved, written.steps)),
        sinks=tuple(map(resolved, written.sinks)),
    )
    if written.dead_letters is not None:
        origin = Origin(written.origin.at("dead_letters"), written.origin.document, ("dead_letters",))
        place = Sink("dead_letters", written.dead_letters, "", origin=origin)
        result = replace(result, dead_letters=resolved(place).spec)
    if not problems:
        kept = join(storage_root(project, process), "schemas", written.name)
        result = replace(
            result, sources=tuple(replace(s, spec=s.spec.keeping(join(kept, s.name))) for s in result.sources)
        )
    try:
        result = replace(result, level=_level(written.level, written.origin, environ, project))
    except UserError as error:
        problems.extend(error.problems)
    settings = {}
    for name, value in written.settings.items():
        origin = written.settings_origins.get(name, written.origin)
        try:
            plain = _plain(dict(value.spark), origin, ("spark",), environ)
            state = value.state and spec(value.state, _below(origin, "state"), environ, project)
            restarts = value.restarts and spec(value.restarts, _below(origin, "restarts"), environ, project)
            settings[name] = value.model_copy(update={"spark": plain, "state": state, "restarts": restarts})
        except UserError as error:
            problems.extend(error.problems)
    if problems:
        raise UserError(problems)
    return replace(result, settings=settings)


def project_settings(project: Project, process: Mapping[str, str]) -> dict[str, str]:
    """The Spark settings of the whole process that the project names, its catalogs' included."""
    environ = environment(project, process)
    settings: dict[str, str] = {}
    for name, catalog in project.catalogs.items():
        origin = _below(project.origin, "catalogs", name)
        settings |= spec(catalog, origin, environ, project).settings(name)
    own = _plain(dict(project.spark), project.origin, ("spark",), environ)
    return settings | {key: to_option(value) for key, value in own.items()}


def deployment(project: Project, process: Mapping[str, str]) -> Deployment:
    """Where the project runs, as far as it is known: without what hangs on a variable that is not set."""
    environ = environment(project, process)

    def known(value: Any) -> Any:
        try:
            return references.resolve(value, environ)
        except references.Unset:
            return None

    settings: dict[str, str] = {}
    for name, catalog in project.catalogs.items():
        with suppress(UserError):  # reported where it is needed
            settings |= spec(catalog, project.origin, environ, project).settings(name)
    own = {key: known(value) for key, value in project.spark.items()}
    settings |= {key: to_option(value) for key, value in own.items() if value is not None}
    storage = known(project.storage)
    shared = [(number, known(folder)) for number, folder in enumerate(project.shared_paths)]
    plain = Deployment()
    return Deployment(
        master=settings.get(MASTER, plain.master),
        file_system=settings.get(FILE_SYSTEM, plain.file_system),
        storage=None if storage is None else project.absolute(storage),
        shared=tuple((number, project.absolute(folder)) for number, folder in shared if folder is not None),
        settings=settings,
    )


def project_state(project: Project, process: Mapping[str, str]) -> State | None:
    """Where the project's queries keep their state."""
    if project.state is None:
        return None
    return spec(project.state, _below(project.origin, "state"), environment(project, process), project)


def policy(project: Project, resolved: Pipeline, query: Query, process: Mapping[str, str]) -> Policy:
    """When a query restarts and when it gives up: its own words, then its pipeline's, then the project's."""
    wide = _level(project.level, project.origin, environment(project, process), project)
    return merged_policy(wide, resolved.level, query.settings.level, max_bad_share=query.settings.max_bad_share)


def _level(level: Level, origin: Origin, environ: Mapping[str, str], project: Project) -> Level:
    if level.restarts is None:
        return level
    return replace(level, restarts=spec(level.restarts, _below(origin, "restarts"), environ, project))


def _below(origin: Origin, *keys: str) -> Origin:
    return Origin(origin.at(*keys), origin.document, (*origin.path, *keys))


def spec(written: S, origin: Origin, environ: Mapping[str, str], project: Project) -> S:
    """One spec, resolved and judged anew: only now are the types of resolved values known."""
    data = _plain(written.given(), origin, (), environ)
    _make_absolute(written, data, project)
    try:
        return type(written).model_validate(data, context={"resolved": True})
    except ValidationError as error:
        raise UserError(
            Problem("VARIABLE002", f"`{'.'.join(map(str, detail['loc']))}` resolves to a wrong value: {detail['msg']}",
                    "set the variable to a value of the right type", origin.at(*detail["loc"]))
            for detail in error.errors(include_url=False)
        ) from None  # fmt: skip


def _make_absolute(written: Spec, data: dict[str, Any], project: Project) -> None:
    for name, field in type(written).model_fields.items():
        key, value = field.alias or name, getattr(written, name)
        if isinstance(value, Spec) and isinstance(data.get(key), dict):
            _make_absolute(value, data[key], project)
        elif is_path(field.annotation, field.metadata) and isinstance(path := data.get(key, field.default), str):
            data[key] = absolute(path, project.root)  # a default too: it would start at the process's folder otherwise


def storage_root(project: Project, process: Mapping[str, str]) -> str:
    """Where checkpoints are kept, absolute."""
    resolved = _plain(project.storage, project.origin, ("storage",), environment(project, process))
    return project.absolute(resolved)


def _connected(resolved: S, project: Project, environ: Mapping[str, str]) -> S:
    """Fills in the connection that a spec names: its keys where the spec has the same, else as options; the own win."""
    name = getattr(resolved, "connection", None)
    if name is None:
        return resolved
    origin = _below(project.origin, "connections", name)
    connection = spec(project.connections[name], origin, environ, project)
    if type(connection).model_fields.keys() <= type(resolved).model_fields.keys():
        missing = connection.model_fields_set - resolved.model_fields_set - {"type"}
        return resolved.model_copy(update={key: getattr(connection, key) for key in missing})
    own = getattr(resolved, "spark_options", {})
    return resolved.model_copy(update={"spark_options": connection.spark_options() | own})


def _plain(value: Any, origin: Origin, path: tuple[str | int, ...], environ: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item, origin, (*path, key), environ) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, origin, (*path, index), environ) for index, item in enumerate(value)]
    try:
        return references.resolve(value, environ)
    except references.Unset as unset:
        raise UserError(
            Problem("VARIABLE001", f"the variable `{unset.name}` is not set",
                    f"set it (`export {unset.name}=…`), or give a default: `${{{unset.name}:-…}}`", origin.at(*path))
        ) from None  # fmt: skip
