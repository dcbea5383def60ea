"""Runs set side by side, and how they look."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from penstock.bench import report
from penstock.bench.contenders.contender import Contender, Launch
from penstock.bench.contenders.every_contender import CONTENDERS
from penstock.bench.measure import Latency
from penstock.bench.results import Run, summary
from penstock.bench.rounds import starts, turns
from penstock.bench.workloads.stateless import WORKLOAD


def run(contender, number, p50, problem=None):
    latency = Latency(p50, 2 * p50, 3 * p50, 4 * p50, 5 * p50)
    return Run("w", contender, number, problem, "d", 9, latency, 1_000.0, 20.0, 100.0, 3.0)


RUNS = [
    *(run("floor", number, p50) for number, p50 in enumerate((1.0, 1.1, 9.0, 1.2), 1)),
    *(run("tuned", number, 100.0) for number in (1, 2, 3, 4)),
    run("penstock", 1, 90.0),
    run("penstock", 2, 110.0, "its result differs"),
    run("penstock", 3, 1.0),
    run("penstock", 4, 80.0),
]


@pytest.fixture
def summed():
    return summary("w", "a <title>", RUNS, "floor", ["penstock"], [("flink", "it cannot be had")])


def test_runs_that_do_not_count_are_in_no_figure(summed):
    assert summed.dropped_rounds == (3,)
    assert [(line.contender, line.rounds, line.latency.p50) for line in summed.lines] == [
        ("floor", 3, 1.1),
        ("tuned", 3, 100.0),
        ("penstock", 2, 85.0),
    ]
    assert [(one.contender, one.round) for one in summed.failed] == [("penstock", 2)]


def test_ours_is_compared_with_each_other(summed):
    found = {(one.theirs, one.figure): one.ratio for one in summed.comparisons}
    assert set(found) == {(theirs, figure) for theirs in ("floor", "tuned") for figure in ("p50", "p95", "p99", "cpu")}
    assert found["tuned", "p50"].median == pytest.approx(0.85)
    assert found["tuned", "p50"].rounds == 2


def test_each_of_ours_is_compared_with_the_others_alone():
    runs = [run("penstock", 1, 10.0), run("realtime", 1, 1.0), run("tuned", 1, 20.0)]
    found = summary("w", "", runs, "floor", ["penstock", "realtime"]).comparisons
    assert [(one.ours, one.theirs) for one in found if one.figure == "p50"] == [
        ("penstock", "tuned"),
        ("realtime", "tuned"),
    ]


def test_without_a_floor_every_round_is_kept():
    runs = [one for one in RUNS if one.contender != "floor"]
    assert summary("w", "", runs, "floor", ["penstock"]).dropped_rounds == ()


def test_a_contender_none_of_whose_runs_counts_has_no_line():
    assert summary("w", "", [run("tuned", 1, 1.0, "it failed")], "floor", ["penstock"]).lines == ()


def test_the_table_and_its_notes(summed):
    rows = [report.cells(line) for line in summed.lines]
    assert all(len(row) == len(report.HEADINGS) for row in rows)
    assert rows[0] == ("floor", "1.10", "2.20", "3.30", "4.40", "5.50", "1,000", "20.0", "100", "3.0", "3")
    assert report.notes(summed) == [
        "flink takes no part: it cannot be had",
        "penstock in round 2: its result differs; it does not count",
        "left out, for the floor drifted: round 3",
    ]
    assert report.comparison_texts(summed)[1] == (
        "penstock / tuned: p50 0.85 (0.8 to 0.9) · p95 0.85 (0.8 to 0.9) · p99 0.85 (0.8 to 0.9) · CPU 1 (1 to 1); "
        "2 rounds, 50%"
    )


def test_a_crash_and_a_pause_have_a_line_where_they_are_sought(summed):
    assert report.further_texts(summed) == []
    floor = replace(run("floor", 1, 1.0), recovery_seconds=0.51, pause_milliseconds=12.34)
    runs = [floor, replace(run("penstock", 1, 1.0), log_milliseconds=6.5)]
    assert report.further_texts(summary("w", "", runs, "floor", ["penstock"])) == [
        "until it went on after the crash: floor 0.5 s",
        "longest time without an answer: floor 12.3 ms",
        "walCommit + commitOffsets of a batch: penstock 6.50 ms",
    ]


def test_a_failure_is_told_in_one_line():
    failed = run("flink", 1, 1.0, "its process ended with code 1; it said:\nTraceback\n  at Some.java")
    assert report.failure_text(failed) == "flink in round 1: its process ended with code 1"


def test_the_plot_is_a_picture_with_a_curve_for_each(summed):
    picture = ET.fromstring(report.plot(summed))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(picture.findall(f"{svg}polyline")) == 3
    assert len(picture.findall(f"{svg}circle")) == 15
    heights = [
        float(point.split(",")[1]) for line in picture.iter(f"{svg}polyline") for point in line.get("points").split()
    ]
    assert all(0 < height < 420 for height in heights)
    texts = [text.text for text in picture.iter(f"{svg}text")]
    assert {"w", "a <title>", "floor", "1.10", "tuned", "100", "penstock", "85.0"} <= set(texts)


def test_every_contender_has_a_colour_of_its_own():
    assert set(report.COLOURS) == {contender.name for contender in CONTENDERS}
    assert len(set(report.COLOURS.values())) == len(CONTENDERS)


def test_without_latency_there_is_no_plot():
    assert report.plot(summary("w", "", [Run("w", "floor", 1, rows_per_second=5.0)], "floor", ["penstock"])) is None


@pytest.mark.parametrize(("values", "found"), [([1.0, 99.0], (0, 2)), ([0.5], (-1, 0)), ([10.0], (1, 2))])
def test_the_axis_has_whole_decades(values, found):
    assert report.decades(values) == found


def test_each_round_begins_with_another_contender():
    contenders = [Contender(name, "", lambda workload, job: Launch(())) for name in "abc"]
    order = [turn.contender.name for turn in turns(WORKLOAD, contenders, 4)]
    assert "".join(order) == "abcbcacababc"
    assert list(turns(WORKLOAD, [], 2)) == []


@pytest.mark.parametrize(
    ("rounds", "times", "expected"),
    [(1, 1, [[1]]), (4, 1, [[1, 2, 3, 4]]), (5, 2, [[1, 2, 3], [4, 5]]), (2, 9, [[1], [2]])],
)
def test_rounds_are_spread_over_starts(rounds, times, expected):
    contenders = [Contender("a", "", lambda workload, job: Launch(()))]
    found = starts(list(turns(WORKLOAD, contenders, rounds)), rounds, times)
    assert [[turn.round for turn in some] for some in found] == expected
