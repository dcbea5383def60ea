"""Class-data archives: used only when they are whole, and never heard of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.actions.doctor import doctor
from penstock.actions.init import init
from penstock.engine import jvm_archive, jvm_options, session
from penstock.engine.java import Java, require_java
from penstock.engine.jvm_archive import Shelf, shelf, unfit, wish

CONTENT = bytes(range(256)) * 100


@pytest.fixture
def here(tmp_path: Path) -> Shelf:
    """A shelf with a whole archive."""
    made = Shelf(tmp_path / "jvm", "k" * 32)
    with made.recording() as draft:
        assert draft is not None
        draft.write_bytes(CONTENT)
        made.take(draft)
    return made


def test_a_whole_archive_is_found(here):
    assert here.find() == here.kept
    assert here.kept.read_bytes() == CONTENT
    assert not here.is_wanted


@pytest.mark.parametrize(
    "damaged",
    [CONTENT[:-1], CONTENT + b"\0", b"", b"garbage", CONTENT[:500] + b"\xff" + CONTENT[501:], bytes(len(CONTENT))],
    ids=["truncated", "longer", "empty", "garbage", "one byte altered", "zeros"],
)
def test_a_damaged_archive_is_deleted_and_wanted_again(here, damaged):
    path = here.kept
    times = path.stat()
    path.write_bytes(damaged)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert here.find() is None
    assert not path.exists()
    assert here.is_wanted


def test_a_shelf_keeps_the_three_used_last(tmp_path):
    shelves = [Shelf(tmp_path, f"{number}" * 32) for number in range(5)]
    for number, one in enumerate(shelves):
        with one.recording() as draft:
            draft.write_bytes(CONTENT)
            os.utime(one.take(draft), (number, number))
    assert [one.kept is not None for one in shelves] == [False, False, True, True, True]


def test_only_one_process_records_and_drafts_of_the_dead_are_deleted(here):
    left = here.folder / "1.draft"
    left.write_bytes(b"half")
    with here.recording() as draft:
        assert not left.exists()
        draft.write_bytes(b"half")
        with here.recording() as second:
            assert second is None
    assert not draft.exists()


def test_after_a_failure_nothing_is_recorded_for_a_week(tmp_path):
    one = Shelf(tmp_path, "k")
    assert one.is_wanted
    one.note_failure()
    assert not one.is_wanted


def test_a_cache_that_is_no_folder_or_full_is_left_alone(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    one = Shelf(tmp_path / "file" / "jvm", "k")
    assert one.find() is None
    monkeypatch.setattr(jvm_archive, "_LEAST_FREE_BYTES", 1 << 62)
    assert not Shelf(tmp_path, "k").is_wanted


def test_the_key_follows_from_java_and_from_each_jar(tmp_path):
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "a.jar").write_text("a")
    environ = {"SPARK_HOME": str(tmp_path / "spark"), "PENSTOCK_CACHE": str(tmp_path / "cache")}
    java = Java(Path("/java"), 17, "17.0.1")

    def key() -> str:
        return shelf(java, environ).key

    first = key()
    assert key() == first
    assert shelf(Java(Path("/java"), 17, "17.0.2"), environ).key != first
    os.utime(jars / "a.jar", (1, 1))
    second = key()
    (jars / "b.jar").write_text("b")
    assert len({first, second, key()}) == 3
    assert shelf(Java(Path("/java"), 17), environ) is None, "a script, behind which any Java may stand"
    assert shelf(java, environ | {"PENSTOCK_CACHE": "/a:b"}) is None


def test_what_stands_before_sparks_jars_makes_an_archive_useless(tmp_path):
    assert unfit(None, {}) == ""
    assert "extraClassPath" in unfit("/mine.jar", {})
    assert str(tmp_path) in unfit(None, {"SPARK_CONF_DIR": str(tmp_path)})
    assert "turned off" in unfit(None, {"PENSTOCK_JVM_ARCHIVE": "off"})


def test_the_setting_and_ci_decide_whether_one_is_recorded():
    assert wish({}) == wish({"CI": "false"}) == "record"
    assert wish({"CI": "true"}) == wish({"PENSTOCK_JVM_ARCHIVE": "use"}) == "use"
    assert wish({"PENSTOCK_JVM_ARCHIVE": "off", "CI": "true"}) == "off"


@pytest.mark.parametrize(
    ("set_by_user", "quick"),
    [
        ("", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
        ("-XX:TieredStopAtLevel=4", "-XX:+UseSerialGC"),
        ("-Xint -Dx=1", "-XX:+UseSerialGC"),
        ("-Xmx2g -XX:+UseG1GC", "-XX:TieredStopAtLevel=1"),
    ],
)
def test_options_of_the_user_win(set_by_user, quick):
    for given in (
        jvm_options.theirs({"spark.driver.extraJavaOptions": set_by_user}, {}),
        jvm_options.theirs({}, {"JAVA_TOOL_OPTIONS": set_by_user}),
    ):
        assert jvm_options.for_seconds(given) == quick


def test_an_archive_of_the_user_wins():
    words = jvm_options.theirs({"spark.driver.extraJavaOptions": '-XX:SharedArchiveFile="/mine"'}, {})
    assert jvm_options.for_archive(words, Path("/ours")) == ""
    assert jvm_options.for_archive((), None) == ""
    assert "/ours" in jvm_options.for_archive((), Path("/ours"))


def test_doctor_tells_of_it(monkeypatch, tmp_path):
    def found() -> str:
        return next(one.found for one in doctor(tmp_path).findings if one.name == "JVM archive")

    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_JVM_ARCHIVE", "use")
    assert found().startswith("none yet")
    one = shelf(require_java(os.environ), os.environ)
    with one.recording() as draft:
        draft.write_bytes(CONTENT)
        one.take(draft)
    assert " MB for Java " in found()
    monkeypatch.setenv("PENSTOCK_JVM_ARCHIVE", "off")
    assert found() == "not used: turned off by PENSTOCK_JVM_ARCHIVE"


@pytest.mark.spark
def test_the_spark_of_a_test_run_uses_the_archive(engine):
    one = session.archive_shelf(require_java(os.environ), {})
    if one is None or one.kept is None:
        pytest.skip("none is recorded: `python -m penstock.actions.record_archive` does it")
    assert str(one.kept) in Path(f"/proc/{engine.jvm.process.pid}/maps").read_text()


@pytest.mark.spark
def test_a_foreign_archive_is_passed_over_and_nothing_is_printed(tmp_path):
    """Whole, but of another class path: only the JVM itself can tell."""
    environ = os.environ | {"PENSTOCK_CACHE": str(tmp_path / "cache"), "PENSTOCK_JVM_ARCHIVE": "use"}
    java = require_java(environ)
    one = shelf(java, environ)
    jar = next((jvm_archive.spark_home(environ) / "jars").glob("spark-launcher*.jar"))
    with one.recording() as draft:
        subprocess.run(
            [java.path, f"-XX:ArchiveClassesAtExit={draft}", "-cp", jar, "org.apache.spark.launcher.Main"],
            capture_output=True, check=False,
        )  # fmt: skip
        one.take(draft)
    init(tmp_path / "project")
    ran = subprocess.run(
        [sys.executable, "-m", "penstock", "check"],
        cwd=tmp_path / "project", env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "1 pipeline checked" in ran.stdout
    assert "cds" not in ran.stdout + (tmp_path / "project" / ".penstock" / "spark.log").read_text()
    assert one.kept is not None


@pytest.mark.spark
def test_a_recorder_that_is_killed_leaves_nothing_that_is_used(tmp_path):
    environ = os.environ | {"PENSTOCK_CACHE": str(tmp_path / "cache"), "PENSTOCK_JVM_ARCHIVE": "use"}
    one = shelf(require_java(environ), environ)
    recorder = subprocess.Popen([sys.executable, "-m", "penstock.actions.record_archive"], env=environ)
    deadline = time.monotonic() + 120
    while not (children := _children(recorder.pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert children, "it started no JVM"
    recorder.send_signal(signal.SIGKILL)
    recorder.wait()
    while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < deadline:
        time.sleep(0.1)  # the JVM sees that its parent is gone, and may yet write its file
    assert one.find() is None
    assert one.is_wanted
    with one.recording() as draft:
        assert draft is not None
    assert not list(one.folder.glob("*.draft"))


def _children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
