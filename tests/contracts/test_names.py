"""One name, one thing: what two files, classes or functions of one name would mean, a reader has to guess."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import penstock

ROOT = Path(penstock.__file__).parent
SAME: tuple[frozenset[str], ...] = (
    frozenset({"actions", "cli"}),  # a verb, and how the terminal shows it
    frozenset({"sources", "sinks", "connections", "bench/workloads"}),  # one system: read, written, addressed, measured
    frozenset({"transforms", "sinks"}),  # the user's Python, as a step and as a sink
    frozenset({"processors", "processors/workers"}),  # a ready-made processor: what is written, and what runs
    frozenset({"transforms", "bench/workloads"}),  # a step, and the workload that measures it
)
"""Rooms in which one name means one thing."""
EVERYWHERE = "codes"
"""Each room has one such file."""
RULES = "checks/rules"
"""Its files have the names of what they judge, wherever that stands."""
WRITTEN_AND_MODEL = ("Pipeline", frozenset({"", "pipeline"}))
"""A pipeline as Python code writes it, and the frozen model of it."""


def rooms_of(names: Mapping[str, Iterable[Path]]) -> Iterator[tuple[str, list[Path]]]:
    """Names that stand in several files without meaning the same there."""
    for name, files in names.items():
        rooms = {file.parent.relative_to(ROOT).as_posix().removeprefix(".") for file in files}
        meant = len(rooms) == len(list(files)) and any(rooms - {RULES} <= same for same in SAME)
        judged = len(rooms - {RULES}) == 1 and RULES in rooms
        if len(list(files)) > 1 and not meant and not judged and (name, frozenset(rooms)) != WRITTEN_AND_MODEL:
            yield name, sorted(files)


def files() -> list[Path]:
    return [file for file in ROOT.rglob("*.py") if file.name != "__init__.py" and "templates" not in file.parts]


def parsed() -> Iterator[tuple[Path, ast.Module]]:
    return ((file, ast.parse(file.read_text())) for file in files())


def module_of(file: Path) -> str:
    return ".".join(("penstock", *file.relative_to(ROOT).with_suffix("").parts))


def test_no_two_modules_have_one_name() -> None:
    names: dict[str, list[Path]] = defaultdict(list)
    for file in files():
        if file.stem != EVERYWHERE:
            names[file.stem].append(file)
    assert list(rooms_of(names)) == []


def test_no_two_classes_have_one_name() -> None:
    names: dict[str, list[Path]] = defaultdict(list)
    for file, tree in parsed():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                names[node.name].append(file)
    assert list(rooms_of(names)) == []


def test_a_function_that_is_imported_by_its_bare_name_has_that_name_alone() -> None:
    """`drafts.write` says what it writes, and `write` alone does not."""
    by_module = {
        module_of(file): {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for file, tree in parsed()
    }
    names: dict[str, set[Path]] = defaultdict(set)
    for _, tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in by_module:
                for alias in node.names:
                    if alias.asname is None and alias.name in by_module[node.module]:
                        names[alias.name].add(ROOT.parent / f"{node.module.replace('.', '/')}.py")
    assert list(rooms_of(names)) == []
