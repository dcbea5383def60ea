"""A project: the folder with `penstock.yaml`, and what its pipelines share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import Field

from penstock import catalog
from penstock.connections.connection import ConnectionSpec
from penstock.lakes.catalogs import CatalogSpec
from penstock.notation.paths import PathText, absolute
from penstock.pipeline.model import Origin
from penstock.pipeline.spec_problems import part, require_mapping, validated
from penstock.pipeline.yaml_text import Document, KeyPath, read_document
from penstock.problems import Problem, UserError, Where, did_you_mean
from penstock.query.restarts import ON_FAILURE, RESTARTS, Level, OnFailure, Restarts
from penstock.query.state_store import State
from penstock.spec import Name, Option, Spec, to_option

FILE = "penstock.yaml"
S = TypeVar("S", bound=Spec)


class Overlay(Spec):
    """What an environment may change."""

    storage: PathText = Field("storage", description="Where checkpoints are kept: a folder or a Hadoop URL.")
    spark: dict[str, Option] = Field(
        default_factory=dict, description="Spark settings of the whole process, such as `spark.master`."
    )
    shared_paths: tuple[PathText, ...] = Field(
        (),
        description="Folders of this machine that every machine of the cluster has under the same path, on NFS for"
        " example. Under a master that is not local, other local folders are refused. Before a run, Penstock proves it:"
        " each executor must see a file that the driver writes there, and the driver must see the executor's.",
    )
    state: State | None = Field(None, description="Where queries keep their state; RocksDB by default.")
    on_failure: OnFailure | None = Field(None, description=ON_FAILURE)
    restarts: Restarts | None = Field(None, description=RESTARTS)
    variables: dict[str, Option] = Field(
        default_factory=dict, description="Values for `${NAME}` that the process environment does not set."
    )
    connections: dict[str, Any] = Field(default_factory=dict, description="Addresses with their auth, by name.")
    catalogs: dict[str, Any] = Field(default_factory=dict, description="Catalogs of tables, by name.")


class ProjectSpec(Overlay):
    """The grammar of `penstock.yaml`."""

    name: Name = Field(description="The project's name: letters, digits, `_` and `-`.", pattern=r"^[A-Za-z_][\w-]*$")
    secrets: tuple[str, ...] = Field((), description="Names of variables whose values are masked in every output.")
    listeners: tuple[str, ...] = Field((), description="`module:Class` of StreamingQueryListeners for every pipeline.")
    environments: dict[str, Any] = Field(
        default_factory=dict, description="By name, what `--env NAME` changes: storage, spark, variables and the like."
    )


@dataclass(frozen=True)
class Project:
    """A project with one environment chosen."""

    name: str
    root: Path
    storage: str
    spark: Mapping[str, Option] = field(default_factory=dict)
    shared_paths: tuple[str, ...] = ()
    state: State | None = None
    level: Level = Level()
    """What it says about restarts and failures."""
    variables: Mapping[str, Option] = field(default_factory=dict)
    connections: Mapping[str, ConnectionSpec] = field(default_factory=dict)
    catalogs: Mapping[str, CatalogSpec] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    listeners: tuple[str, ...] = ()
    environment: str | None = None
    origin: Origin = field(default=Origin(Where(FILE)), compare=False, repr=False)

    @property
    def local_folder(self) -> Path:
        """What must be on a local disk: locks and logs."""
        return self.root / ".penstock"

    def values(self, process: Mapping[str, str]) -> dict[str, str]:
        """The values of references: the process's environment, then the project's `variables`."""
        given = {name: value for name, value in process.items() if value}
        return {name: to_option(value) for name, value in self.variables.items()} | given

    def absolute(self, path: str) -> str:
        return absolute(path, self.root)


def bare(root: Path) -> Project:
    """The project of a pipeline file that stands alone, without `penstock.yaml`."""
    return Project(name=root.name or "project", root=root, storage="storage")


def load(root: Path, environment: str | None = None) -> Project:
    """The project at `root`, as `environment` makes it. Raises UserError with all that is wrong."""
    return from_document(read_document(root / FILE, FILE), root, environment)


def from_document(document: Document, root: Path, environment: str | None = None) -> Project:
    """Every environment is judged, whichever is chosen."""
    require_mapping(document.data, document, (), "a project")
    spec = validated(ProjectSpec, document.data, document)
    projects: dict[str | None, Project] = {None: _built(spec, document, root, None)}
    base = {key: value for key, value in document.data.items() if key != "environments"}
    for name, overlay in spec.environments.items():
        path = ("environments", name)
        require_mapping(overlay, document, path, "an environment")
        validated(Overlay, overlay, document, path)
        changed = document.overlaid(_merged(base, overlay), path)
        projects[name] = _built(validated(ProjectSpec, changed.data, changed), changed, root, name)
    if environment not in projects:
        known = ", ".join(spec.environments)
        fix = f"use one of: {known}" if known else "declare it under `environments:` in penstock.yaml"
        message = f"there is no environment `{environment}`{did_you_mean(str(environment), spec.environments)}"
        raise UserError(Problem("PROJECT002", message, fix, document.key_at("environments")))
    return projects[environment]


def _built(spec: ProjectSpec, document: Document, root: Path, environment: str | None) -> Project:
    return Project(
        name=spec.name,
        root=root,
        storage=spec.storage,
        spark=spec.spark,
        shared_paths=spec.shared_paths,
        state=spec.state,
        level=Level(spec.restarts, spec.on_failure),
        variables=spec.variables,
        connections=_parts(spec.connections, document, ("connections",), catalog.connections(), "connection"),
        catalogs=_parts(spec.catalogs, document, ("catalogs",), catalog.spark_catalogs(), "catalog"),
        secrets=spec.secrets,
        listeners=spec.listeners,
        environment=environment,
        origin=Origin(document.at(), document),
    )


def _parts(
    data: dict[str, Any], document: Document, path: KeyPath, known: dict[str, type[S]], noun: str
) -> dict[str, S]:
    return {name: part(value, document, (*path, name), known, noun) for name, value in data.items()}


def _merged(base: Any, over: Any) -> Any:
    if isinstance(base, dict) and isinstance(over, dict):
        return base | {key: _merged(base.get(key), value) for key, value in over.items()}
    return over
