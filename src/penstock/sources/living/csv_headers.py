"""Names for values by the first line of each file: code that runs in Spark's workers.

It is sent to them by value, so that Penstock need not be installed there: nothing else of Penstock may be used here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyarrow import Array, RecordBatch

Batches = Callable[[Iterable["RecordBatch"]], Iterable["RecordBatch"]]
NAMES, VALUES, TOO_LONG, TEXT, FILE = (f"_penstock_{word}" for word in ("names", "values", "too_long", "text", "file"))


@dataclass(frozen=True)
class Layout:
    """Rows come as `width` values, the text of a line that has more or fewer, its file, and what folders give."""

    width: int
    own: tuple[str, ...]
    """The names that get a column, in their order."""
    sep: str
    refusal: dict[str, Any]
    """What is told when a line is wider than `width`."""
    mark: str


def by_header(layout: Layout) -> Batches:
    """Rows by position → rows by name, with what else is there as two lists. First lines are left out."""

    def named_rows(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
        file_now, header = None, []
        for batch in batches:
            for file, rows in _by_file(batch, layout.width + 1):
                part = rows
                if file != file_now:
                    file_now, header, part = file, _header(rows, layout, file), rows.slice(1)
                if part.num_rows:
                    yield _named(part, header, layout)

    return named_rows


def first_lines(batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """The first line of each file: rows are its only or first value, its whole text if it has more, and the file."""
    import pyarrow

    file_now = None
    for batch in batches:
        for file, rows in _by_file(batch, 2):
            if file != file_now:
                file_now, whole = file, rows.column(1)[0].as_py()
                line = rows.column(0)[0].as_py() if whole is None else whole
                columns = [pyarrow.array([one], pyarrow.string()) for one in (line, file)]
                yield pyarrow.RecordBatch.from_arrays(columns, names=["line", "file"])


def _by_file(batch: RecordBatch, place: int) -> Iterator[tuple[str, RecordBatch]]:
    """A batch in pieces of one file each. Spark reads a task's files one after the other."""
    files = batch.column(place).to_pylist()
    start = 0
    for end in range(1, len(files) + 1):
        if end == len(files) or files[end] != files[start]:
            yield files[start], batch.slice(start, end - start)
            start = end


def _header(rows: RecordBatch, layout: Layout, file: str) -> list[str]:
    names = [rows.column(number)[0].as_py() for number in range(layout.width)]
    if rows.column(layout.width)[0].as_py() is not None and names[-1] is not None:
        raise ValueError(layout.mark + json.dumps(layout.refusal | {"file": file}))
    while names and names[-1] is None:
        names.pop()
    clean = [name.lstrip("\ufeff") if name else f"_c{place}" for place, name in enumerate(names)]
    # As Spark does: a name that stands twice gets its place behind it.
    return [f"{name}{place}" if clean.count(name) > 1 else name for place, name in enumerate(clean)]


def _named(rows: RecordBatch, header: list[str], layout: Layout) -> RecordBatch:
    import pyarrow

    text, count = pyarrow.string(), rows.num_rows
    values = {name: rows.column(number).cast(text) for number, name in enumerate(header)}
    more = [name for name in header if name not in layout.own]
    nothing, no_lists = pyarrow.nulls(count, text), pyarrow.nulls(count, pyarrow.list_(text))
    names = [pyarrow.array([name] * count, text) for name in more]
    too_long = _too_long(rows, header, layout.width)
    columns = {f"_c{place}": values.get(name, nothing) for place, name in enumerate(layout.own)}
    columns |= {TEXT: _texts(rows, too_long, layout)}
    columns |= {name: rows.column(name) for name in rows.schema.names[layout.width + 1 :]}
    columns |= {
        NAMES: _lists(names) if more else no_lists,
        VALUES: _lists([values[name] for name in more]) if more else no_lists,
        TOO_LONG: too_long,
    }
    return pyarrow.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _too_long(rows: RecordBatch, header: list[str], width: int) -> Array:
    """Which lines have more values than the header has names."""
    import pyarrow
    from pyarrow import compute

    if len(header) == width:  # then Spark has put the line aside; one that is too short has no last value
        return compute.and_(rows.column(width).is_valid(), rows.column(width - 1).is_valid())
    found = pyarrow.array([False] * rows.num_rows)
    for number in range(len(header), width):
        found = compute.or_(found, rows.column(number).is_valid())
    return found


def _texts(rows: RecordBatch, too_long: Array, layout: Layout) -> Array:
    """The text of each line that Spark has put aside, and of each that is too long."""
    import pyarrow

    texts = rows.column(layout.width).to_pylist()
    for row, wrong in enumerate(too_long.to_pylist()):
        if wrong and texts[row] is None:
            values = (rows.column(number)[row].as_py() for number in range(layout.width))
            texts[row] = layout.sep.join("" if value is None else value for value in values).rstrip(layout.sep)
    return pyarrow.array(texts, pyarrow.string())


def _lists(columns: list[Array]) -> Array:
    """Columns → one list a row."""
    import numpy
    import pyarrow

    rows, width = len(columns[0]), len(columns)
    order = numpy.arange(rows * width).reshape(width, rows).T.ravel()
    flat = pyarrow.concat_arrays(columns).take(pyarrow.array(order))
    return pyarrow.ListArray.from_arrays(numpy.arange(rows + 1, dtype="int32") * width, flat)
