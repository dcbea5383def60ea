"""What breaks while a pipeline runs: what is decided, how soon rows flow again, and that none is lost or repeated.

`make proof` runs all of them and writes `docs/faults.md`; `make test` runs the cheapest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from penstock.supervise import events
from tests.faults.breaks import BEFORE, DURING, Case
from tests.faults.cases import CASES
from tests.faults.lab import Lab, Seen, Way
from tests.faults.page import write_page

pytestmark = [pytest.mark.spark, pytest.mark.services]

WRITE = "PENSTOCK_WRITE_FAULTS"
"""Set by `make faults`: the page is written."""
_seen: list[tuple[Case, Way, Seen]] = []
EVERY = range(BEFORE.start, DURING.stop)


def _params() -> Iterator[object]:
    for case in CASES:
        for way in case.ways:
            short = case.short and way == case.ways[0]
            yield pytest.param(case, way, id=f"{case.name}-{way}", marks=() if short else pytest.mark.proof)


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module", autouse=True)
def page() -> Iterator[None]:
    yield
    if WRITE in os.environ:
        write_page(Path(__file__).parents[2] / "docs/faults.md", _seen)


@pytest.mark.parametrize(("case", "way"), list(_params()))
def test_a_fault(case: Case, way: Way, tmp_path, start_engine, cleanup, request):
    lab = Lab(tmp_path / "project", way, start_engine, cleanup, request.getfixturevalue)
    fault = case.lay_out(lab)
    lab.feed(BEFORE)
    if way == "once":
        assert not lab.once()
        lab.feed(DURING)
        lab.begin()
        lab.wait_until(lambda: lab.has(events.QueryStarted), "it did not start")
    else:
        lab.begin()
        lab.wait_for_ids(len(BEFORE))
    fault.begin()
    if fault.stays:
        problems = lab.ended()
        fault.end()
        began = time.monotonic()
        assert not lab.once(), "it does not resume"
        seconds = time.monotonic() - began
    else:
        time.sleep(fault.hold_seconds)
        fault.end()
        seconds = lab.wait_for_ids(len(EVERY))
        problems = lab.end()
        assert not lab.once(), "it does not resume"
    seen = lab.seen(EVERY, seconds, problems)
    _seen.append((case, way, seen))
    assert seen.lost == 0
    assert case.repeats or seen.repeated == 0
    if case.code:
        assert seen.codes == (case.code,), problems
    match case.decision:
        case "goes on":
            assert not lab.has(events.Restarting)
        case "recovers":  # between two batches nobody may notice it
            assert not problems
        case "waits or restarts":
            assert not problems
            assert lab.has(events.Restarting) or lab.has(events.Away), "nothing was noticed"
        case "stops":
            assert len(problems) == 1
            assert "Traceback" not in problems[0].message
