"""`penstock bench`, as a user meets it."""

from __future__ import annotations

import json

import pytest

from penstock.bench.contenders.every_contender import CONTENDERS
from penstock.bench.workloads.every_workload import WORKLOADS


def test_workloads_and_contenders_are_listed(penstock):
    told = penstock("bench", "--list", "--json").json
    assert [one["name"] for one in told["workloads"]] == [one.name for one in WORKLOADS]
    assert [one["name"] for one in told["contenders"]] == [one.name for one in CONTENDERS]
    assert all(one.title in penstock("bench", "--list").out for one in WORKLOADS)


def test_an_unknown_workload_is_one_problem(penstock):
    ended = penstock("bench", "stateles", "--json")
    assert (ended.code, ended.codes) == (1, ["BENCH001"])
    assert "did you mean `stateless`?" in ended.out


def test_an_unknown_contender_is_one_problem(penstock):
    ended = penstock("bench", "--contenders", "floor,tunde", "--json")
    assert (ended.code, ended.codes) == (1, ["BENCH002"])
    assert "did you mean `tuned`?" in ended.out


def test_a_folder_that_cannot_be_written_is_told_before_anything_runs(penstock, tmp_path):
    (tmp_path / "file").touch()
    ended = penstock("bench", "--out", tmp_path / "file", "--json")
    assert (ended.code, ended.codes) == (1, ["BENCH003"])


@pytest.mark.parametrize("option", ["--rounds", "--seconds", "--rate", "--records"])
def test_nothing_is_measured_in_no_time(penstock, option):
    assert penstock("bench", option, "0").code == 2


@pytest.mark.services
def test_a_short_run_gives_json_and_a_picture(penstock, tmp_path):
    short = ("--rounds", "1", "--seconds", "1", "--warm", "0", "--rate", "200")
    ended = penstock("bench", "stateless", "--contenders", "floor", *short, "--out", tmp_path / "out", "--json")
    assert ended.code == 0
    assert ended.json["ok"] is True
    assert [run["contender"] for run in ended.json["runs"]] == ["floor"]
    assert json.loads((tmp_path / "out" / "results.json").read_text()) == ended.json
    assert (tmp_path / "out" / "stateless.svg").read_text().startswith("<svg")


@pytest.mark.services
def test_a_short_run_shows_a_table(penstock):
    ended = penstock("bench", "drain", "--contenders", "floor", "--rounds", "1", "--records", "1000")
    assert ended.code == 0
    assert "rows/s" in ended.out
    assert "floor" in ended.out
