"""`penstock graph`, and selectors as a shell gives them. Without Spark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from penstock import Pipeline, sinks, sources

MEDALLION = Path(__file__).parents[2] / "examples" / "medallion"


@pytest.fixture
def medallion(tmp_path):
    ignored = shutil.ignore_patterns("out", "storage", ".penstock", "__pycache__", "dead_letters")
    return Path(shutil.copytree(MEDALLION, tmp_path / "medallion", ignore=ignored))


@pytest.fixture(autouse=True)
def no_spark(monkeypatch):
    def refuse(*given, **more):
        raise AssertionError("it starts Spark")

    monkeypatch.setattr("penstock.engine.session.start", refuse)


def test_the_text_names_who_feeds_whom_within_80_columns(penstock, medallion):
    ended = penstock("graph", at=medallion)
    assert (ended.code, ended.err) == (0, "")
    assert max(map(len, ended.out.splitlines())) <= 80
    flat = " ".join(ended.out.split())
    assert "stage 1 bronze.bronze reads lines: files input" in flat
    assert "bronze: delta out/bronze ← bronze.bronze" in flat
    assert "silver_table: delta out/silver → gold.gold" in flat
    assert ended.out.index("stage 1") < ended.out.index("stage 2") < ended.out.index("stage 3")


def test_json_has_the_stages_and_both_ends(penstock, medallion):
    told = penstock("graph", "--json", at=medallion).json
    assert {f"{one['pipeline']}.{one['query']}": one["stage"] for one in told["queries"]} == {
        "bronze.bronze": 1,
        "silver.silver": 2,
        "silver.typed_dead_letters": 2,
        "gold.gold": 3,
    }
    (gold,) = (one for one in told["queries"] if one["pipeline"] == "gold")
    assert gold["reads"] == [
        {"name": "silver", "type": "delta", "places": ["out/silver"], "from": ["silver.silver"], "static": False}
    ]
    assert gold["writes"] == [{"name": "gold_table", "type": "delta", "places": ["out/gold"], "to": []}]


def test_mermaid_draws_each_pipeline_and_every_arrow(penstock, medallion):
    drawn = penstock("graph", "--mermaid", at=medallion).out.splitlines()
    assert drawn[0] == "flowchart LR"
    assert [line.strip() for line in drawn].count("end") == sum("subgraph" in line for line in drawn) == 3
    ids = {match[2]: match[1] for line in drawn if (match := re.match(r' +(?:subgraph )?(n\d+)\S*?"(.*)"', line))}
    assert f"  {ids['delta out/bronze']} --> {ids['bronze: delta out/bronze']}" in drawn
    assert f"  {ids['delta out/silver']} --> {ids['silver: delta out/silver']}" in drawn
    assert f"  {ids['parsed']} --> {ids['typed']}" in drawn


@pytest.mark.parametrize(
    ("words", "pipelines"),
    [
        (("+gold",), ["bronze", "silver", "gold"]),
        (("silver+",), ["silver", "gold"]),
        (("+silver",), ["bronze", "silver"]),
        (("bronze", "gold"), ["bronze", "gold"]),
        (("+pipelines/silver.yaml",), ["bronze", "silver"]),
        (("gold.gold",), ["gold"]),
    ],
)
def test_selectors_choose_a_part_of_it(penstock, medallion, words, pipelines):
    told = penstock("graph", *words, "--json", at=medallion).json
    assert list(dict.fromkeys(one["pipeline"] for one in told["queries"])) == pipelines


def test_a_fast_check_takes_selectors_and_complains_of_nothing_that_will_be_made(penstock, medallion):
    told = penstock("check", "--fast", "+gold", "--json", at=medallion).json
    assert (told["ok"], told["problems"], told["pipelines"]) == (True, [], ["bronze", "silver", "gold"])
    one = penstock("check", "--fast", "silver.silver", "--json", at=medallion).json
    assert [query["query"] for query in one["queries"]] == ["silver", "typed_dead_letters"]


@pytest.mark.parametrize("command", [("graph",), ("check", "--fast"), ("run",)])
@pytest.mark.parametrize(("word", "code"), [("golt", "PROJECT004"), ("tag:no", "PROJECT004"), ("parsed", "PROJECT010")])
def test_what_cannot_be_meant_is_one_problem(penstock, medallion, command, word, code):
    ended = penstock(*command, word, "--json", at=medallion)
    assert (ended.code, ended.codes) == (1, [code])


def test_a_file_that_cannot_be_read_is_told_where_a_selector_looks_around(penstock, medallion):
    (medallion / "pipelines/bronze.yaml").write_text("pipeline: bronze\n")
    assert penstock("graph", "+gold", "--json", at=medallion).code == 1
    assert penstock("graph", "gold", "--json", at=medallion).code == 0


def test_a_circle_is_an_error_before_anything_starts(penstock, medallion):
    bronze = medallion / "pipelines/bronze.yaml"
    bronze.write_text(
        "pipeline: bronze\nsources: {lines: {type: delta, path: out/silver/}}\n"
        "steps: {bronze: {sql: 'SELECT city AS line, city AS file FROM lines'}}\n"
        "sinks: {bronze_table: {of: bronze, type: delta, path: out/bronze}}\n"
    )
    told = penstock("check", "--fast", "--json", at=medallion)
    assert set(told.codes) == {"CHAIN001"}
    ran = penstock("run", "--once", "--json", at=medallion)
    assert (ran.code, set(ran.codes)) == (1, {"CHAIN001"})
    assert len(penstock("graph", at=medallion).out.splitlines()) > 5  # it can still be looked at


def test_tags_in_yaml_and_in_python_are_the_same(read):
    written = read(
        "pipeline: clicks\ntags: [hourly]\nsources: {ticks: {type: rate}}\n"
        "steps: {odd: {sql: SELECT value FROM ticks WHERE value % 2 = 1, tags: [odd.ones]}}\n"
        "sinks: {out: {of: odd, type: console}}\nqueries: {odd: {tags: [slow]}}\n"
    )
    made = Pipeline("clicks", tags=["hourly"])
    made.source("ticks", sources.Rate())
    made.sql("odd", "SELECT value FROM ticks WHERE value % 2 = 1", tags=["odd.ones"])
    made.sink("out", sinks.Console(), of="odd")
    made.query("odd", tags=["slow"])
    assert made.build() == written
    assert written.tags_of("odd") == {"hourly", "odd.ones", "slow"}
    assert written.tags_of("ticks") == {"hourly"}


@pytest.mark.parametrize("tags", ["[a b]", "hourly", "['${TAG}']", "[+x]"])
def test_a_tag_is_a_plain_word(judged, tags):
    text = f"pipeline: p\ntags: {tags}\nsources: {{t: {{type: rate}}}}\nsinks: {{o: {{of: t, type: console}}}}\n"
    assert [problem.code for problem in judged(text)] == ["SPEC009"]
