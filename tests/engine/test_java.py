from __future__ import annotations

from pathlib import Path

import pytest

from penstock.engine.java import find_java, parse_major, require_java
from penstock.problems import UserError


def fake_java(folder: Path, says: str) -> Path:
    folder.mkdir(parents=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("says", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime Environment (build 17.0.15+6)', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Dversion=3\nopenjdk version "17.0.2"', 17),
        ("Unable to locate a Java Runtime.", None),
        ("", None),
    ],
)
def test_parse_major(says: str, major: int | None) -> None:
    assert parse_major(says) == major


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home" / "bin", "")
    on_path = fake_java(tmp_path / "path", "")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}
    assert find_java(environ) == home
    assert find_java({**environ, "JAVA_HOME": ""}) == on_path
    assert find_java({"PATH": str(tmp_path)}) is None
    assert find_java({}) is None


def test_a_new_java_is_taken(tmp_path: Path) -> None:
    path = fake_java(tmp_path / "bin", 'openjdk version "21.0.1"')
    java = require_java({"JAVA_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert (java.path, java.major) == (path, 21)


@pytest.mark.parametrize(
    ("says", "code", "part"),
    [
        ('java version "1.8.0_402"', "ENGINE002", "is Java 8"),
        ('openjdk version "11.0.2"', "ENGINE002", "is Java 11"),
        ("Unable to locate a Java Runtime.", "ENGINE001", "Unable to locate"),
    ],
)
def test_an_unfit_java_is_named(tmp_path: Path, says: str, code: str, part: str) -> None:
    path = fake_java(tmp_path / "bin", says)
    with pytest.raises(UserError) as caught:
        require_java({"PATH": f"{path.parent}:/usr/bin:/bin"})
    (problem,) = caught.value.problems
    assert problem.code == code
    assert part in problem.message
    assert str(path) in problem.message
    assert "openjdk-17-jre-headless" in problem.fix


def test_a_java_home_that_points_to_nothing_is_named_although_path_has_a_java(tmp_path: Path) -> None:
    on_path = fake_java(tmp_path / "bin", 'openjdk version "17.0.15"')
    with pytest.raises(UserError, match=r"ENGINE001 .*JAVA_HOME is `/nowhere`"):
        require_java({"JAVA_HOME": "/nowhere", "PATH": str(on_path.parent)})


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"ENGINE001 .*no `java` is on the PATH"):
        require_java({"PATH": str(tmp_path)})
