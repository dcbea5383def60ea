from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.engine import connectors
from penstock.engine.connectors import Coordinate, LockedJar, available, ensure, fetch, locked_jars, missing, settings
from penstock.engine.java import require_java
from penstock.engine.spark_versions import SUPPORTED
from penstock.formats.connector import CONNECTOR_OF_FORMAT
from penstock.problems import UserError

VERSIONS = [one.spark for one in SUPPORTED]
SMALL = "postgresql"

# Stands in for Ivy: leaves each jar where Ivy would, holding the jar's own name, save those that it is told to spoil.
FAKE_JAVA = """#!{python}
import pathlib
import xml.etree.ElementTree as xml

here = pathlib.Path(__file__).parent
with (here / "runs").open("a") as runs:
    runs.write("run\\n")
for jar in xml.parse("ivy.xml").iter("dependency"):
    if jar.get("name") in {absent!r}:
        continue
    file = pathlib.Path("ivy", jar.get("org"), jar.get("name"), "jars", jar.get("name") + "-" + jar.get("rev") + ".jar")
    file.parent.mkdir(parents=True)
    file.write_text("garbled" if jar.get("name") in {garbled!r} else jar.get("name"))
"""


def fake_java(folder: Path, garbled: Sequence[str] = (), absent: Sequence[str] = ()) -> Path:
    java = folder / "java"
    java.write_text(FAKE_JAVA.format(python=sys.executable, garbled=garbled, absent=absent))
    java.chmod(0o755)
    return java


def jar(artifact: str) -> LockedJar:
    return LockedJar(Coordinate("org.example", artifact, "1.0"), hashlib.sha256(artifact.encode()).hexdigest())


def left_in(cache: Path) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "a [cache] & more"))
    return connectors.cache_folder()


@pytest.mark.parametrize("spark_minor", VERSIONS)
def test_every_lock_is_whole(spark_minor: str) -> None:
    jars = {one for name in available(spark_minor) for one in locked_jars(name, spark_minor)}
    assert jars
    assert all(re.fullmatch("[0-9a-f]{64}", one.sha256) for one in jars)
    # One Ivy module and one cache folder hold them all, so neither names nor file names may clash.
    assert len({(one.coordinate.group, one.coordinate.artifact) for one in jars}) == len(jars)
    assert len({one.file_name for one in jars}) == len(jars)


def test_a_lock_line_reads_as_it_is_written() -> None:
    text = "# a comment\n\norg.example:thing_2.13:1.0 sha256:abc\n"
    (one,) = connectors.parse_lock(text)
    assert one == LockedJar(Coordinate("org.example", "thing_2.13", "1.0"), "abc")
    assert str(one) in text


def test_every_format_and_every_setting_names_a_connector() -> None:
    named = {*CONNECTOR_OF_FORMAT.values(), *connectors.SETTINGS_OF_CONNECTOR}
    assert named <= {name for spark_minor in VERSIONS for name in available(spark_minor)}


def test_an_unknown_connector_is_named_with_the_nearest() -> None:
    with pytest.raises(UserError, match=r"ENGINE003 .*`kafak` — did you mean `kafka`\?.*postgresql"):
        locked_jars("kafak", "4.1")


@pytest.mark.parametrize("name", ["../4.1/kafka", "", "*"])
def test_a_connector_is_a_name_and_not_a_path(name: str) -> None:
    with pytest.raises(UserError, match="ENGINE003"):
        locked_jars(name, "4.1")


def test_a_connector_of_other_versions_says_which() -> None:
    with pytest.raises(UserError, match=r"ENGINE003 .*`iceberg` does not work with Spark 4\.3, only with 4\.1"):
        locked_jars("iceberg", "4.3")


def test_settings_join_the_extensions() -> None:
    both = settings(["delta", "iceberg", "delta", "kafka"])
    assert both == {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    assert settings(["kafka"]) == {}


def test_ivy_xml_escapes_what_it_is_given() -> None:
    odd = Coordinate('a"b', "<c>", "1&2")
    (dependency,) = ElementTree.fromstring(connectors.ivy_xml([odd])).iter("dependency")
    assert Coordinate(dependency.attrib["org"], dependency.attrib["name"], dependency.attrib["rev"]) == odd
    assert dependency.attrib["transitive"] == "false"


def test_the_cache_can_be_moved(tmp_path: Path) -> None:
    assert connectors.cache_folder({"PENSTOCK_CACHE": str(tmp_path)}) == tmp_path / "jars"
    assert connectors.cache_folder({}).name == "jars"


def test_jars_that_came_are_kept_and_told_of(tmp_path: Path, cache: Path) -> None:
    told: list[tuple[int, int, str]] = []
    fetch([jar("a"), jar("b")], cache, fake_java(tmp_path), lambda *args: told.append(args))
    assert left_in(cache) == ["a-1.0.jar", "b-1.0.jar"]
    assert [(done, total) for done, total, _ in told] == [(1, 2), (2, 2)]
    assert {name for _, _, name in told} == {"a-1.0.jar", "b-1.0.jar"}


def test_a_jar_with_a_wrong_checksum_is_deleted(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(UserError, match=r"ENGINE005 .*`org\.example:b:1\.0`") as caught:
        fetch([jar("a"), jar("b")], cache, fake_java(tmp_path, garbled=["b"]))
    assert "org.example:a" not in str(caught.value)
    assert left_in(cache) == ["a-1.0.jar"]


def test_a_jar_that_cannot_be_had_is_named_and_the_others_are_kept(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(UserError, match=r"ENGINE004 .*`org\.example:b:1\.0`.*PENSTOCK_CACHE") as caught:
        fetch([jar("a"), jar("b")], cache, fake_java(tmp_path, absent=["b"]))
    assert "org.example:a" not in str(caught.value)
    assert left_in(cache) == ["a-1.0.jar"]


@pytest.mark.parametrize("content", [b"", b"garbled"])
def test_a_garbled_jar_in_the_cache_is_never_used(tmp_path: Path, cache: Path, content: bytes) -> None:
    (locked,) = locked_jars(SMALL, "4.1")
    cache.mkdir(parents=True)
    (cache / locked.file_name).write_bytes(content)
    assert missing([SMALL], "4.1") == (locked,)
    with pytest.raises(UserError, match="ENGINE004"):
        ensure([SMALL], "4.1", fake_java(tmp_path, absent=[locked.coordinate.artifact]), None)
    with pytest.raises(UserError, match="ENGINE005"):
        ensure([SMALL], "4.1", fake_java(tmp_path, garbled=[locked.coordinate.artifact]), None)


def test_a_garbled_jar_in_the_cache_is_mended(tmp_path: Path, cache: Path) -> None:
    cache.mkdir(parents=True)
    (cache / "a-1.0.jar").write_text("garbled")
    fetch([jar("a")], cache, fake_java(tmp_path))
    assert (cache / "a-1.0.jar").read_text() == "a"


def test_two_at_once_leave_whole_jars(tmp_path: Path, cache: Path) -> None:
    java = fake_java(tmp_path)
    both = [threading.Thread(target=fetch, args=([jar("a"), jar("b")], cache, java)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert left_in(cache) == ["a-1.0.jar", "b-1.0.jar"]
    assert (tmp_path / "runs").read_text().count("run") == 2


def test_an_optional_jar_that_does_not_come_is_waited_for_once_and_briefly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(connectors, "_OPTIONAL_SECONDS", 0.5)
    java, calls = tmp_path / "java", tmp_path / "calls"
    java.write_text(f"#!/bin/sh\necho called >> {calls}\nexec sleep 60\n")
    java.chmod(0o755)
    began = time.monotonic()
    assert [connectors.can_be_had(SMALL, "4.1", java) for _ in range(3)] == [False, False, False]
    assert time.monotonic() - began < 20
    assert calls.read_text() == "called\n"
    # A day later it is tried again, and a jar that is there needs no try.
    (tried,) = (tmp_path / "cache/jars").glob(".*-not-fetched")
    os.utime(tried, (time.time() - 90_000,) * 2)
    assert connectors.can_be_had(SMALL, "4.1", java) is False
    assert calls.read_text() == "called\n" * 2


def test_a_fetch_that_stalls_is_ended(tmp_path: Path, cache: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexec sleep 60\n")
    java.chmod(0o755)
    cache.mkdir(parents=True)
    assert connectors.retrieve([jar("a").coordinate], cache, java, stalled_after_seconds=0.2) == {}


@pytest.mark.parametrize("place", ["a file", "a file/below"])
def test_a_cache_that_cannot_be_written_says_so(tmp_path: Path, place: str) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(UserError, match=r"ENGINE004 .*a file.* cannot be written"):
        fetch([jar("a")], tmp_path / place, fake_java(tmp_path))


@pytest.mark.services
def test_a_real_fetch_and_then_no_process(cache: Path) -> None:
    told: list[tuple[int, int, str]] = []
    (locked,) = locked_jars(SMALL, "4.1")
    paths = ensure([SMALL, SMALL], "4.1", require_java(os.environ).path, lambda *args: told.append(args))
    assert paths == (cache / locked.file_name,)
    assert told == [(1, 1, locked.file_name)]
    assert left_in(cache) == [locked.file_name]
    assert missing([SMALL], "4.1") == ()
    assert ensure([SMALL], "4.1", Path("/no/java/here"), None) == paths


@pytest.mark.services
def test_a_jar_that_the_registry_does_not_have(cache: Path) -> None:
    with pytest.raises(UserError, match=r"ENGINE004 .*`org\.example:no-such-jar:1\.0`"):
        fetch([jar("no-such-jar")], cache, require_java(os.environ).path)
    assert left_in(cache) == []


@pytest.mark.services
def test_a_network_that_is_down(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1")
    with pytest.raises(UserError, match="ENGINE004"):
        ensure([SMALL], "4.1", require_java(os.environ).path, None)
    assert left_in(cache) == []
