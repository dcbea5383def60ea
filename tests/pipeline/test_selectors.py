"""`gold`, `clicks.per_page`, `+gold`, `silver+`, `tag:hourly`: which part of a project is meant."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.graph.project_graph import ProjectGraph, graph_of
from penstock.graph.selectors import Selected, parsed, require_queries, select
from penstock.pipeline import from_yaml
from penstock.pipeline.project import bare
from penstock.pipeline.yaml_text import parse
from penstock.problems import UserError

BRONZE = """
pipeline: bronze
tags: [daily]
sources: {lines: {type: files, path: in, format: text}}
steps:
  cleaned: {sql: SELECT trim(value) AS line FROM lines}
  bronze: {sql: SELECT line FROM cleaned, expect: {full: {that: "line <> ''", otherwise: dead_letter}}}
sinks: {bronze_table: {of: bronze, type: delta, path: out/bronze}}
"""
SILVER = """
pipeline: silver
sources: {bronze: {type: delta, path: out/bronze}}
steps:
  parsed: {sql: SELECT line FROM bronze, tags: [hot]}
  long_lines: {sql: SELECT line FROM parsed WHERE length(line) > 80}
sinks:
  silver_table: {of: parsed, type: delta, path: out/silver}
  long_table: {of: long_lines, type: delta, path: out/long}
queries: {long_lines: {tags: [slow, daily]}}
"""
GOLD = """
pipeline: gold
sources: {silver: {type: delta, path: out/silver}}
steps: {counted: {sql: "SELECT line, count(*) AS n FROM silver GROUP BY line"}}
sinks: {gold_table: {of: counted, type: delta, path: out/gold, write: upsert, keys: [line]}}
queries: {counted: {mode: update}}
"""
ALONE = """
pipeline: alone
sources: {silver: {type: rate}}
sinks: {seen: {of: silver, type: console}}
"""
ROOT = Path("/project")


def graph() -> ProjectGraph:
    pipelines = [from_yaml.from_document(parse(text, "p.yaml"), ROOT) for text in (ALONE, BRONZE, GOLD, SILVER)]
    return graph_of(pipelines, bare(ROOT), {})


GRAPH = graph()


def chosen(*words: str) -> Selected:
    return select(GRAPH, [parsed(word) for word in words], {})


def queries(*words: str) -> set[str]:
    return {f"{pipeline}.{query}" for pipeline, found in chosen(*words).queries.items() for query in found}


B, L = "bronze.bronze", "bronze.bronze_dead_letters"
P, W, G, A = "silver.parsed", "silver.long_lines", "gold.counted", "alone.silver"


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("bronze", {B, L}),
        ("silver", {P, W}),
        ("silver.parsed", {P}),
        ("parsed", {P}),
        ("silver_table", {P}),
        ("silver.silver_table", {P}),
        ("bronze.bronze", {B, L}),  # its dead letters go with it
        ("+gold", {B, L, P, G}),  # long_lines feeds nothing of gold
        ("gold+", {G}),
        ("+gold+", {B, L, P, G}),
        ("bronze+", {B, L, P, W, G}),
        ("+silver", {B, L, P, W}),
        ("silver+", {P, W, G}),
        ("parsed+", {P, W, G}),
        ("+long_lines", {B, L, P, W}),
        ("cleaned+", {B, L, P, W, G}),
        ("+counted", {B, L, P, G}),
        ("alone.silver+", {A}),
        ("+alone", {A}),
        ("tag:daily", {B, L, W}),
        ("tag:hot", {P}),
        ("+tag:hot", {B, L, P}),
        ("tag:slow+", {W}),
        ("tag:hot+", {P, W, G}),
        ("gold alone", {G, A}),
        ("gold gold silver.parsed", {G, P}),
        ("tag:slow +gold", {W, B, L, P, G}),
    ],
)
def test_what_a_selection_means(words, meant):
    assert queries(*words.split()) == meant


WORDS = ["alone", "bronze", "silver", "gold", *(f"{p}.{n}" for p, n in GRAPH.nodes), "tag:daily", "tag:hot"]
words = st.sampled_from(WORDS)


def nodes(*given: str) -> set[tuple[str, str]]:
    return set(chosen(*given).nodes)


@given(words)
def test_a_plus_only_adds_and_both_are_the_union(word):
    above, below, both = nodes(f"+{word}"), nodes(f"{word}+"), nodes(f"+{word}+")
    assert nodes(word) <= above & below
    assert both == above | below


@given(
    st.lists(st.builds(lambda word, a, b: f"{'+' * a}{word}{'+' * b}", words, st.booleans(), st.booleans()), min_size=1)
)
def test_several_are_their_union_whatever_their_order(given):
    union = set().union(*(nodes(one) for one in given))
    assert nodes(*given) == nodes(*reversed(given)) == union


@given(words, words)
def test_what_feeds_is_fed(one, other):
    """A node is above another exactly if that one is below it."""
    for upper, lower in product(nodes(one), nodes(other)):
        assert (upper in GRAPH.ancestors([lower])) == (lower in GRAPH.descendants([upper]))


@given(words)
def test_what_is_above_is_closed_and_comes_first(word):
    found = chosen(f"+{word}").nodes
    assert GRAPH.ancestors(found) == set(found)
    for node in found:
        assert all(found.index(parent) < found.index(node) for parent in GRAPH.parents[node])


@given(st.text(max_size=12))
def test_any_other_text_is_one_problem_or_a_selection(text):
    try:
        found = select(GRAPH, [parsed(text)], {})
    except UserError as error:
        (problem,) = error.problems
        assert (problem.code, problem.where) == ("PROJECT004", None)
        assert problem.fix
    else:
        assert found.nodes


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("silvr", "did you mean `silver`?"),
        ("+golde", "did you mean `gold`"),
        ("silver.parsd", "did you mean `silver.parsed`"),
        ("tag:dayly", "did you mean `tag:daily`?"),
        ("tag:nothing", "nothing has the tag `nothing`"),
        ("nowhere.parsed", "there is no pipeline or step `nowhere.parsed`"),
        ("+", "there is no pipeline or step `+`"),
        ("", "there is no pipeline or step"),
    ],
)
def test_what_is_unknown_is_told_with_what_is_near(word, said):
    with pytest.raises(UserError) as told:
        chosen(word)
    (problem,) = told.value.problems
    assert said in problem.message
    assert problem.code == "PROJECT004"


def test_a_name_in_several_pipelines_asks_which():
    twice = graph_of([*GRAPH.pipelines, from_yaml.from_document(parse(SILVER.replace(
        "pipeline: silver", "pipeline: copy"), "c.yaml"), ROOT)], bare(ROOT), {})  # fmt: skip
    with pytest.raises(UserError) as told:
        select(twice, [parsed("parsed")], {})
    assert "name one of: silver.parsed, copy.parsed" in told.value.problems[0].fix


def test_a_step_that_feeds_no_sink_runs_only_as_a_part_of_others():
    with pytest.raises(UserError) as told:
        require_queries(GRAPH, [parsed("cleaned")], chosen("cleaned"))
    (problem,) = told.value.problems
    assert problem.code == "PROJECT010"
    assert "bronze.bronze" in problem.fix
