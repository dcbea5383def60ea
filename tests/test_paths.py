"""Paths as users write them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.notation import paths
from penstock.notation.paths import PathText
from penstock.spec import Spec

ROOT = Path("/srv/shop")


@pytest.mark.parametrize(
    ("path", "url", "local", "absolute"),
    [
        ("in", False, True, "/srv/shop/in"),
        ("./in", False, True, "/srv/shop/in"),
        ("/data/in", False, True, "/data/in"),
        ("s3a://bucket/in", True, False, "s3a://bucket/in"),
        ("hdfs:/in", True, False, "hdfs:/in"),
        ("file:///data/in", True, True, "file:///data/in"),
        ("file:/data/in", True, True, "file:/data/in"),
        ("in:out", False, True, "/srv/shop/in:out"),
    ],
)
def test_tells_local_paths_from_urls(path: str, url: bool, local: bool, absolute: str) -> None:
    assert paths.is_url(path) is url
    assert paths.is_local(path) is local
    assert paths.absolute(path, ROOT) == absolute


@pytest.mark.parametrize("path", ["/data/in", "file:/data/in", "file:///data/in"])
def test_a_file_url_is_a_local_path(path: str) -> None:
    assert paths.to_local(path) == Path("/data/in")


@pytest.mark.parametrize(
    ("path", "leaves"),
    [
        ("in", False),
        ("a/../in", False),
        ("..in", False),
        ("../in", True),
        ("..", True),
        ("a/../../in", True),
        ("/elsewhere/../in", False),
        ("s3a://bucket/../in", False),
        ("a\0b", False),
    ],
)
def test_sees_paths_that_climb_out_of_the_project(path: str, leaves: bool) -> None:
    assert paths.leaves(path) is leaves


@pytest.mark.parametrize(
    ("path", "fixed"),
    [("in/day", "in/day"), ("in/2026-*/x", "in"), ("*/x", "."), ("/in/{a,b}", "/in"), ("in/a?", "in"), ("/*", "/")],
)
def test_the_fixed_part_ends_above_the_first_glob(path: str, fixed: str) -> None:
    assert paths.fixed_part(path) == fixed
    assert paths.has_glob(path) is (path != fixed)


@pytest.mark.parametrize(
    ("reader", "other", "matches", "within"),
    [
        ("/in", "/in", True, True),
        ("/in", "/in/done", True, True),
        ("/in/done", "/in", True, False),
        ("/in", "/out", False, False),
        ("/in", "/inner", False, False),
        ("/in/*", "/in/done", True, True),
        ("/in/*/x", "/in/done", True, False),
        ("/in/day=*", "/in/done", False, False),
        ("/in/{a,b}", "/in/a", True, True),
        ("/in/[^a]*", "/in/b", True, True),
        ("/in/[^a]*", "/in/a", False, False),
        ("/in/[ab]*", "/in/[ab]*", True, True),
        ("/in", "/in/./x", True, True),
        ("/in", "/a/../in/x", True, True),
        ("file:/in", "/in/x", True, True),
        ("file:///in", "/in/x", True, True),
        ("s3a://bucket/in", "s3a://bucket/in/x", True, True),
        ("s3a://bucket/in", "s3a://other/in/x", False, False),
        ("s3a://bucket/in", "/bucket/in", False, False),
    ],
)
def test_sees_which_reader_covers_which_folder(reader: str, other: str, matches: bool, within: bool) -> None:
    assert paths.matches(reader, other) is matches
    assert paths.matches(other, reader) is matches
    assert paths.is_within(reader, other) is within


@given(st.text(), st.text())
def test_any_two_paths_can_be_compared(one: str, other: str) -> None:
    assert paths.matches(one, other) == paths.matches(other, one)
    assert paths.matches(one, one)
    paths.leaves(one)
    paths.fixed_part(one)


class _Places(Spec):
    plain: PathText
    optional: PathText | None = None
    marked: Annotated[PathText, "and more"] = "x"
    words: str = "no path"


@pytest.mark.parametrize(("name", "is_path"), [("plain", True), ("optional", True), ("marked", True), ("words", False)])
def test_finds_the_fields_that_are_paths(name: str, is_path: bool) -> None:
    field = _Places.model_fields[name]
    assert paths.is_path(field.annotation, field.metadata) is is_path
