"""Cases in two directions: `make test` takes a diagonal, on which each value stands once, `make proof` takes all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest


def grid(names: str, rows: Sequence[object], columns: Sequence[object]) -> pytest.MarkDecorator:
    """All pairs of a row and a column. Those off the diagonal are for `make proof`."""
    few = min(len(rows), len(columns))
    cases = [
        pytest.param(row, column, marks=[] if down % few == across % few else [pytest.mark.proof])
        for (down, row), (across, column) in product(enumerate(rows), enumerate(columns))
    ]
    return pytest.mark.parametrize(names, cases)
