"""Makes a project that runs as it is."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from penstock.actions.order_feed import order_files, place
from penstock.json_schema import pipeline_schema, project_schema
from penstock.problems import Problem, UserError

_SAMPLE_FILES = 6


@dataclass(frozen=True)
class InitResult:
    folder: str
    files: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return {"folder": self.folder, "files": list(self.files)}


def init(folder: Path, sample_files: int = _SAMPLE_FILES) -> InitResult:
    """A project with a pipeline, sample input and JSON Schemas for editors. Raises UserError; overwrites nothing."""
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        what = "is a file" if folder.is_file() else "is not empty"
        raise UserError(Problem("PROJECT006", f"`{folder}` {what}", "name a new or an empty folder"))
    try:
        with as_file(files("penstock.templates") / "orders") as template:
            shutil.copytree(template, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        (folder / "gitignore").rename(folder / ".gitignore")
        for number, (text, _) in enumerate(order_files(sample_files), start=1):
            place(text, folder / "data" / "orders", f"orders-{number:03d}.json")
        (folder / "data" / "orders").mkdir(exist_ok=True)
        write_schemas(folder / ".penstock")
    except OSError as error:
        raise UserError(
            Problem(
                "PROJECT006",
                f"`{folder}` cannot be written: {error.strerror or error}",
                "name a folder that this user may write to",
            )
        ) from None
    written = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return InitResult(str(folder), tuple(written))


def write_schemas(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in (("pipeline", pipeline_schema()), ("project", project_schema())):
        (folder / f"{name}.schema.json").write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
