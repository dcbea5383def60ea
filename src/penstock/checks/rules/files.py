"""Folders and files: what Spark only documents, and what the disk says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.notation.paths import PathText, is_path, is_within, leaves, matches
from penstock.notation.references import has_reference
from penstock.pipeline.model import Pipeline, Sink, Source
from penstock.sources.files import Files as FilesSource
from penstock.spec import Spec

_HALF_WRITTEN = re.compile(r"\.(tmp|temp|part|partial|crdownload|inprogress|filepart|swp|writing)$|~$", re.IGNORECASE)

_SOURCE = "type: files, path: in, format: text"


@rule(
    "FILES001",
    "warning",
    wrong=f"""
    pipeline: newest
    sources: {{lines: {{{_SOURCE}, latest_first: true, max_files_per_trigger: 10, max_file_age: 1 day}}}}
    sinks: {{out: {{of: lines, type: console}}}}
    """,
    right=f"""
    pipeline: newest
    sources: {{lines: {{{_SOURCE}, latest_first: true, max_files_per_trigger: 10}}}}
    sinks: {{out: {{of: lines, type: console}}}}
    """,
)
def age_limit_ignored(subject: Subject) -> Iterator[Finding]:
    """`latest_first` with a rate limit makes Spark ignore `max_file_age`.

    Old files wait behind new ones then, and an age limit would lose them, so Spark leaves it out without a word.
    """
    for source, spec in _files_sources(subject.pipeline):
        limited = spec.max_files_per_trigger is not None or spec.max_bytes_per_trigger is not None
        if spec.latest_first and limited and spec.max_file_age is not None:
            yield (
                f"`max_file_age` of `{source.name}` is ignored: `latest_first` with a rate limit takes any age",
                "remove `max_file_age`, or `latest_first`",
                source.origin.at("max_file_age"),
            )


@rule(
    "FILES002",
    wrong="""
    pipeline: archived
    sources:
      lines: {type: files, path: in/*, format: text, clean_source: archive, source_archive_dir: in/done}
    sinks: {out: {of: lines, type: console}}
    """,
    right="""
    pipeline: archived
    sources:
      lines: {type: files, path: in/*, format: text, clean_source: archive, source_archive_dir: archive}
    sinks: {out: {of: lines, type: console}}
    """,
)
def archive_is_seen(subject: Subject) -> Iterator[Finding]:
    """Archived files lie where the source would read them again.

    The archive folder may not match the source's path down to the depth of the shallower of the two.
    """
    for source, spec in _files_sources(subject.pipeline):
        if spec.source_archive_dir is not None and matches(
            subject.path(spec.path), subject.path(spec.source_archive_dir)
        ):
            yield (
                f"the archive folder `{spec.source_archive_dir}` matches the source's path `{spec.path}`",
                "archive into a folder beside the source, not in or above it",
                source.origin.at("source_archive_dir"),
            )


@rule(
    "FILES003",
    wrong=f"""
    pipeline: circle
    sources: {{lines: {{{_SOURCE}}}}}
    sinks: {{out: {{of: lines, type: files, path: in/out, format: text}}}}
    """,
    right=f"""
    pipeline: line
    sources: {{lines: {{{_SOURCE}}}}}
    sinks: {{out: {{of: lines, type: files, path: out, format: text}}}}
    """,
)
def source_sees_sink(subject: Subject) -> Iterator[Finding]:
    """A source would read what a sink of the same pipeline writes.

    The pipeline would feed on its own output for ever. Another pipeline may read a sink's folder: that is a chain.
    """
    for source, spec in _files_sources(subject.pipeline):
        for sink, sink_path in _sink_paths(subject.pipeline):
            if is_within(subject.path(spec.path), subject.path(sink_path)):
                yield (
                    f"source `{source.name}` would read the output of sink `{sink.name}`:"
                    f" `{spec.path}` covers `{sink_path}`",
                    "write to a folder that the source's path does not cover",
                    sink.origin.at("path"),
                )


@rule("FILES004", needs="disk", wrong="`in/day=1/` became `in/country=de/` while the checkpoint lives on", right="")
def partition_columns_changed(subject: Subject) -> Iterator[Finding]:
    """The partition folders of a source have other columns than at the checkpoint's birth.

    Spark asks that `key=value` folders keep their keys for the life of a query; the rows would lose columns otherwise.
    """
    for query in subject.pipeline.queries:
        born = subject.disk.checkpoints.get(query.name)
        for source, spec in _files_sources(subject.pipeline):
            now = subject.disk.folders.get(subject.path(spec.path))
            if (
                not born
                or not now
                or source.name not in born.partition_columns
                or (not now.files and not now.partition_columns)
            ):
                continue
            before = born.partition_columns[source.name]
            if before != now.partition_columns:
                yield (
                    f"the folders of source `{source.name}` are partitioned by {_listed(now.partition_columns)};"
                    f" the checkpoint of `{query.name}` began with {_listed(before)}",
                    "put the old folders back, or read the new ones with a new source and query",
                    source.origin.at("path"),
                )


@rule("FILES005", "warning", needs="disk", wrong="`in/orders.csv.part` lies in a folder that is read", right="")
def half_written_files(subject: Subject) -> Iterator[Finding]:
    """Files that look half-written lie in a folder that is read.

    Spark reads a file once, when it first sees it. Rows that are written later are lost. Files must appear whole: write
    them under a name that starts with `.` or `_`, which Spark passes over, and then rename them.
    """
    for source, spec in _files_sources(subject.pipeline):
        folder = subject.disk.folders.get(subject.path(spec.path))
        if folder is None or spec.path_glob_filter is not None:
            continue
        strange = [name for name in folder.files if _HALF_WRITTEN.search(name)]
        if strange:
            yield (
                f"`{strange[0]}` in the folder of `{source.name}` looks half-written, and Spark would read it as it is",
                "write files under a name that starts with `.` and rename them when they are whole,"
                " or choose files with `path_glob_filter`",
                source.origin.at("path"),
            )


@rule("FILES006", "warning", needs="disk", wrong="`in/orders.csv` grew after batch 3 had read it", right="")
def file_changed_after_read(subject: Subject) -> Iterator[Finding]:
    """A file was changed after it was read, so its new rows are in no batch.

    The checkpoint remembers when each file that it read was last changed; on disk it is newer now.
    """
    for query in subject.pipeline.queries:
        born = subject.disk.checkpoints.get(query.name)
        changed = (
            [f for f in born.read_files if f.modified_now_ms is not None and f.modified_now_ms > f.modified_ms]
            if born
            else []
        )
        if changed:
            first = changed[0]
            more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
            yield (
                f"`{first.path}` was changed after batch {first.batch} of `{query.name}` had read it{more}:"
                " the change is not read",
                "place files whole, by renaming them into the folder; put the missing rows into a new file",
                query.origin.where,
            )


@rule("FILES007", needs="disk", wrong="`path: data/ordres`, and there is no such folder", right="")
def missing_path(subject: Subject) -> Iterator[Finding]:
    """The path of a source does not exist.

    Spark would fail at the first start. Most often a word is misspelled, or the folder is still to be made. A folder
    that a sink of the project writes into is no mistake: it will be there once that sink has run.
    """
    to_come = {joint.source.name for joint in subject.joined.joints if joint.reader[0] == subject.pipeline.name}
    for source in subject.pipeline.sources:
        written = getattr(source.spec, "path", None)
        folder = subject.disk.folders.get(subject.path(written)) if written else None
        if written and folder is not None and not folder.exists and source.name not in to_come:
            yield (
                f"the path of source `{source.name}` does not exist: `{written}`",
                "make the folder, or name one that exists",
                source.origin.at("path"),
            )


@rule("FILES008", needs="disk", wrong="`path: out/report.csv`, and that is a file", right="")
def output_is_a_file(subject: Subject) -> Iterator[Finding]:
    """The path of a sink is a file.

    A sink writes many files into a folder; Spark would fail at the first batch.
    """
    for sink in subject.pipeline.sinks:
        written = getattr(sink.spec, "path", None)
        folder = subject.disk.folders.get(subject.path(written)) if written else None
        if folder is not None and folder.is_file:
            yield (f"the path of sink `{sink.name}` is a file: `{written}`", "name a folder", sink.origin.at("path"))
        elif folder is not None and not folder.writable:
            yield (
                f"the folder of sink `{sink.name}` cannot be written: `{written}`",
                "give this user the right to write there",
                sink.origin.at("path"),
            )


@rule(
    "FILES009",
    wrong="""
    pipeline: two_readers
    sources: {lines: {type: files, path: in, format: text, clean_source: delete}}
    steps: {upper: {sql: SELECT upper(value) AS value FROM lines}}
    sinks:
      raw: {of: lines, type: console}
      big: {of: upper, type: console}
    """,
    right="""
    pipeline: one_reader
    sources: {lines: {type: files, path: in, format: text, clean_source: delete}}
    steps: {upper: {sql: SELECT upper(value) AS value FROM lines}}
    sinks: {big: {of: upper, type: console}}
    """,
)
def cleaned_under_a_reader(subject: Subject) -> Iterator[Finding]:
    """Files are cleaned away while another query reads them.

    Each query reads its sources by itself. One that deletes or archives files takes them from the others.
    """
    for source, spec in _files_sources(subject.pipeline):
        if spec.clean_source == "off":
            continue
        others = {
            (pipeline.name, query.name)
            for pipeline in (subject.pipeline, *subject.others)
            for query in pipeline.queries
            for other in pipeline.sources_of(query.name)
            if isinstance(other.spec, FilesSource) and matches(subject.path(other.spec.path), subject.path(spec.path))
        }
        if len(others) > 1:
            named = ", ".join(f"`{query}`" for _, query in sorted(others))
            yield (
                f"`clean_source` of `{source.name}` takes files away that several queries read: {named}",
                "read the folder with one query only, or set `clean_source: off`",
                source.origin.at("clean_source"),
            )


@rule(
    "FILES010",
    wrong="""
    pipeline: outside
    sources: {lines: {type: files, path: ../other/in, format: text}}
    sinks: {out: {of: lines, type: console}}
    """,
    right="""
    pipeline: inside
    sources: {lines: {type: files, path: in, format: text}}
    sinks: {out: {of: lines, type: console}}
    """,
)
def path_leaves_project(subject: Subject) -> Iterator[Finding]:
    """A relative path climbs out of the project.

    It would mean another folder wherever the project is checked out. Absolute paths and URLs say what they mean.
    """
    for node in (*subject.pipeline.sources, *subject.pipeline.sinks):
        for key, value in _paths_in(node.spec):
            if leaves(value):
                yield (
                    f"`{key}` of `{node.name}` leaves the project: `{value}`",
                    "use a path inside the project, an absolute path or a URL",
                    node.origin.at(key),
                )


@rule(
    "FILES011",
    needs="disk",
    wrong="the folder `storage` was deleted, and `out` with the output of batches 0 to 7 was kept",
    right="delete both or neither, or write to a new folder",
)
def sink_is_ahead(subject: Subject) -> Iterator[Finding]:
    """The folder of a sink holds batches that the checkpoint does not know.

    Spark's file sink keeps a log of its folder and passes over every batch that is in it already. A checkpoint that
    begins anew counts from 0, so its rows would be passed over without a word, and lost.
    """
    for query in subject.pipeline.queries:
        born = subject.disk.checkpoints.get(query.name)
        if born is None and subject.disk.orphans:
            continue  # a renamed step: told as such
        known = born.last_offset if born and born.last_offset is not None else -1
        for sink in query.sinks:
            folder = subject.disk.folders.get(subject.path(getattr(sink.spec, "path", None) or ""))
            written = folder.last_sink_batch if folder else None
            if written is not None and written > known:
                yield (
                    f"the folder of sink `{sink.name}` has the output of batch {written}, and the"
                    f" checkpoint of `{query.name}` {f'is at batch {known}' if known >= 0 else 'begins anew'}:"
                    " Spark would pass over the rows in between",
                    "write to a new folder, or move the old output away"
                    + ("" if subject.pipeline.is_ephemeral(query) else "; if the checkpoint was lost, restore it"),
                    sink.origin.at("path"),
                )


def _files_sources(pipeline: Pipeline) -> Iterator[tuple[Source, FilesSource]]:
    for source in pipeline.sources:
        if isinstance(source.spec, FilesSource) and not source.spec.is_static and not has_reference(source.spec.path):
            yield source, source.spec


def _sink_paths(pipeline: Pipeline) -> Iterator[tuple[Sink, str]]:
    for sink in pipeline.sinks:
        path = getattr(sink.spec, "path", None)
        if path and not has_reference(path):
            yield sink, path


def _paths_in(spec: Spec) -> Iterator[tuple[str, PathText]]:
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if isinstance(value, str) and is_path(field.annotation, field.metadata):
            yield field.alias or name, value


def _listed(columns: tuple[str, ...]) -> str:
    return ", ".join(f"`{column}`" for column in columns) or "no columns"
