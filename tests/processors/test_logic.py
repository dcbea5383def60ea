"""What ready-made processors compute, against plain models: no Spark, values only."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from penstock.processors.workers import aggregates
from penstock.processors.workers.presence import Presence, after_rows, after_time, next_look
from penstock.processors.workers.ranking import RankedRow, changed_places, ranked, still_inside, worth_keeping
from penstock.processors.workers.spans import features, still_needed
from penstock.processors.workers.stretches import Stretch, closed_by, first_end, merged_stretches

GAP = 10
times = st.integers(0, 200)
rows = st.lists(st.tuples(times, st.one_of(st.none(), st.integers(-5, 5))), max_size=25)
MADE = [(kind, "value") for kind in ("first", "last", "min", "max", "sum", "count")]
KINDS = [kind for kind, _ in MADE]


def sessions_of(came: list[tuple[int, int | None]]) -> list[tuple]:
    """The model: all rows at hand, sorted, cut where a gap is."""
    groups: list[list[tuple[int, int | None]]] = []
    for row in sorted(came, key=lambda row: (row[0], row[1] is not None, row[1] or 0)):
        if groups and row[0] < groups[-1][-1][0] + GAP:
            groups[-1].append(row)
        else:
            groups.append([row])
    return [(group[0][0], group[-1][0], len(group), *made_of(group)) for group in groups]


def made_of(group: list[tuple[int, int | None]]) -> list:
    known = [(time, value) for time, value in group if value is not None]
    if not known:
        return [None] * 5 + [0]
    values = [value for _, value in known]
    return [min(known)[1], max(known)[1], min(values), max(values), sum(values), len(values)]


def stretch(time: int, value: int | None) -> Stretch:
    return Stretch(time, time, aggregates.of_row({"value": value}, time, MADE))


def joined(one: Stretch, other: Stretch) -> aggregates.Kept:
    return aggregates.joined(one.kept, other.kept, KINDS)


def shown(stretches: list[Stretch]) -> list[tuple]:
    return [(one.start, one.end, *aggregates.shown(one.kept, KINDS)) for one in stretches]


@given(st.lists(rows, max_size=4))
def test_sessions_are_those_of_all_rows_whatever_the_order_and_the_batches(batches):
    found: list[Stretch] = []
    for batch in batches:
        found = merged_stretches([*found, *(stretch(*row) for row in batch)], GAP, joined)
    assert shown(found) == sessions_of([row for batch in batches for row in batch])


@given(rows, times)
def test_what_is_closed_no_later_row_can_lengthen(came, watermark):
    found = merged_stretches([stretch(*row) for row in came], GAP, joined)
    closed, waiting = closed_by(found, GAP, watermark)
    assert closed + waiting == found
    later = merged_stretches([*found, stretch(watermark + 1, 1)], GAP, joined)
    assert all(one in later for one in closed)
    assert first_end(waiting, GAP) is None or first_end(waiting, GAP) > watermark


def test_rows_a_whole_gap_apart_are_two_sessions():
    assert len(merged_stretches([stretch(0, 1), stretch(GAP, 1)], GAP, joined)) == 2
    assert len(merged_stretches([stretch(0, 1), stretch(GAP - 1, 1)], GAP, joined)) == 1


@given(st.lists(rows, max_size=4), st.lists(st.integers(1, 60), min_size=1, max_size=3))
def test_features_are_those_of_all_rows_so_far_though_old_ones_are_forgotten(batches, spans):
    watermark, so_far, kept = -1_000, [], []
    for batch in batches:
        timely = [row for row in batch if row[0] > watermark]
        so_far += timely
        kept = sorted([*kept, *timely], key=lambda event: event[0])
        for time, _ in timely:
            wanted = []
            for span in spans:
                inside = [value for at, value in so_far if time - span < at <= time]
                wanted += [len(inside), sum(value for value in inside if value is not None)]
            assert features(kept, time, spans) == wanted
        watermark = max([watermark, *(row[0] - 20 for row in timely)])
        kept = still_needed(kept, max(spans), watermark)
        assert all(watermark - max(spans) < at for at, _ in kept)


def test_sums_of_floats_do_not_depend_on_the_order():
    events = [(1, 0.5), (2, 1e17), (3, 0.25), (4, -1e17)]
    assert features(events, 4, [10]) == [4, 0.75]


@given(st.lists(rows, max_size=4), st.integers(1, 3), st.one_of(st.none(), st.integers(1, 60)))
def test_a_ranking_is_that_of_all_rows_and_told_places_add_up_to_it(batches, n, span):
    """Only what may still get a place is kept, and rows leave when the watermark has passed them by the span."""
    watermark, so_far, kept = -1_000, [], []
    table: dict[int, tuple] = {}
    for number, batch in enumerate(batches):
        timely = [(time, value, number, place) for place, (time, value) in enumerate(batch)]
        timely = [row for row in timely if row[1] is not None and row[0] > watermark]
        so_far += timely
        watermark = max([watermark, *(row[0] - 20 for row in timely)])
        came = [RankedRow((row[1], row[0], row), row[0] if span else None, row) for row in timely]
        before, kept = kept, worth_keeping(still_inside([*kept, *came], span, watermark), n)
        for place, entry in changed_places(ranked(before, n), ranked(kept, n)):
            table[place] = entry.row if entry else None
        inside = [row for row in so_far if span is None or row[0] + span > watermark]
        wanted = sorted(inside, key=lambda row: (row[1], row[0], row), reverse=True)[:n]
        assert [row for _, row in sorted(table.items()) if row] == wanted
        assert span is not None or len(kept) <= n


def newer(one: Stretch, other: Stretch) -> object:
    return max(one, other, key=lambda stretch: stretch.end).kept


@given(st.lists(st.lists(times, max_size=10), max_size=5))
def test_absences_are_the_gaps_between_rows_whatever_the_batches(batches):
    """By event time, once the watermark has passed everything, the batches no longer matter."""
    known, told, watermark, timely = Presence([], None), [], -1_000, []
    for batch in batches:
        came = [time for time in batch if time > watermark]
        timely += came
        known, said = after_rows(
            known, [(time, time) for time in came], GAP, lambda one, other: max(one.kept, other.kept)
        )
        told += said
        watermark = max([watermark, *(time - 30 for time in came)])
        known, said = after_time(known, GAP, watermark)
        told += said
        look = next_look(known, GAP, None)
        assert look is None or look > watermark
    known, said = after_time(known, GAP, 1_000)
    told += said
    ordered = sorted(set(timely))
    gaps = [(one, other) for one, other in pairwise(ordered) if other - one >= GAP]
    assert [(one.row, one.at) for one in told if one.status == "absent"] == [
        (last, last + GAP) for last in [*(one for one, _ in gaps), *ordered[-1:]]
    ]
    assert sorted(one.away_since for one in told if one.status == "returned") == [one for one, _ in gaps]
    assert known == Presence([], ordered[-1] if ordered else None)


def test_a_key_that_comes_back_is_told_once():
    known, told = after_rows(Presence([], None), [(5, "a")], GAP, newer)
    assert [(one.status, one.row) for one in told] == [("seen", "a")]
    known, told = after_time(known, GAP, 15)
    assert [tuple(one) for one in told] == [("absent", 15, "a", 5)]
    known, told = after_rows(known, [(40, "b")], GAP, newer)
    assert [tuple(one) for one in told] == [("returned", 40, "b", 5)]
    known, told = after_rows(known, [(38, "older")], GAP, newer)
    assert told == []
    known, told = after_rows(known, [(41, "c")], GAP, newer)
    assert [tuple(one) for one in told] == [("seen", 41, "c", None)]
