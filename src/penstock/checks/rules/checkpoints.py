"""Checkpoints: whose they are, and whether they can be gone on with."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.notation.references import has_reference
from penstock.pipeline.model import QuerySettings
from penstock.pipeline.project import Project
from penstock.query.state_store import FORMAT, PROVIDER
from penstock.query.watermark import POLICY
from penstock.spec import to_option


@rule(
    "QUERY002",
    wrong="""
    pipeline: renamed
    sources: {ticks: {type: rate}}
    steps: {odd: {sql: SELECT * FROM ticks WHERE value % 2 = 1}}
    sinks:
      every_one: {of: ticks, type: console}
      odd_ones: {of: odd, type: console}
    queries: {odd: {was: ticks}}
    """,
    right="""
    pipeline: renamed
    sources: {ticks: {type: rate}}
    steps: {odd: {sql: SELECT * FROM ticks WHERE value % 2 = 1}}
    sinks: {odd_ones: {of: odd, type: console}}
    queries: {odd: {was: even}}
    """,
)
def was_is_taken(subject: Subject) -> Iterator[Finding]:
    """A former name belongs to another query.

    `was:` takes a checkpoint over. From a query that still runs it would be stolen, and that one would begin anew.
    """
    claimed: dict[str, str] = {query.name: query.name for query in subject.pipeline.queries}
    for query in subject.pipeline.queries:
        was = query.settings.was
        if was is None or was == query.name:
            continue
        if was in claimed:
            yield (
                f"`{was}` is the checkpoint of `{claimed[was]}`: `{query.name}` cannot take it over",
                "name in `was` only a query that this one replaces",
                query.origin.at("was"),
            )
        claimed.setdefault(was, query.name)


@rule(
    "CHECKPOINT001",
    needs="disk",
    wrong="step `revenue` became `sales`, and its checkpoint was left behind",
    right="queries: {sales: {was: revenue}}",
)
def orphaned_checkpoint(subject: Subject) -> Iterator[Finding]:
    """A checkpoint belongs to no query any more.

    A query is named after its step. When the step is renamed, the query would start from nothing: it would read
    everything again and forget its state. `was:` tells it to go on where the former name stopped.
    """
    new = [query.name for query in subject.pipeline.queries if query.name not in subject.disk.checkpoints]
    for orphan in subject.disk.orphans:
        renamed = new[0] if len(new) == 1 else "<new name>"
        yield (
            f"the checkpoint of `{orphan}` has no query any more; a renamed step would start from nothing",
            f"if `{orphan}` was renamed, add `queries: {{{renamed}: {{was: {orphan}}}}}`;"
            " if it is done with, move its folder out of the storage's `checkpoints`",
            subject.pipeline.origin.where,
        )


@rule("CHECKPOINT002", needs="disk", wrong="`storage: /var/streams`, where this user may not write", right="")
def storage_not_writable(subject: Subject) -> Iterator[Finding]:
    """Checkpoints cannot be written to the project's storage.

    Without a checkpoint a query forgets where it stopped, so it is not started at all.
    """
    storage = subject.disk.storage
    if storage is not None and (storage.is_file or not storage.writable):
        why = "it is a file" if storage.is_file else "this user may not write there"
        yield (
            f"checkpoints cannot be kept in `{storage.path}`: {why}",
            "change `storage` in penstock.yaml, or the rights of the folder",
            subject.project.origin.at("storage"),
        )


@rule(
    "CHECKPOINT006",
    needs="disk",
    wrong="`storage/checkpoints/orders/revenue/0001` was deleted, and `0001.json` beside it was kept",
    right="",
)
def identity_lost(subject: Subject) -> Iterator[Finding]:
    """A checkpoint is not the one that its manifest was written for.

    Spark's query id in `metadata` is the checkpoint's identity: sinks use it to know what they have written. Without
    it, or with another, a run would begin anew, or write twice.
    """
    for query in subject.pipeline.queries:
        born = subject.disk.checkpoints.get(query.name)
        if born is not None and born.spark_id != born.id:
            why = "has no identity" if born.spark_id is None else f"has the identity {born.spark_id}"
            yield (
                f"the checkpoint of `{query.name}` {why}; its manifest says {born.id}",
                f"restore `{born.path}` from a backup, or begin a new checkpoint:"
                f" `penstock checkpoint reset {subject.pipeline.name}.{query.name} --from earliest`",
                query.origin.where,
            )


@rule(
    "CHECKPOINT005",
    "warning",
    needs="disk",
    wrong="`spark.sql.shuffle.partitions` is 8; the checkpoint was born with 2",
    right="",
)
def birth_setting_changed(subject: Subject) -> Iterator[Finding]:
    """A setting differs from what the checkpoint was born with, and is not used.

    The number of shuffle partitions, the state store and its format, and the watermark policy are fixed for the life
    of a checkpoint. Spark ignores a change of some and fails on others; Penstock keeps what the checkpoint has.
    """
    for query in subject.pipeline.queries:
        born = subject.disk.checkpoints.get(query.name)
        if born is None:
            continue
        own = {setting: (keys, value) for keys, setting, value in _set_by(query.settings)}
        wide = {setting: (keys, value) for keys, setting, value in _set_by(subject.project)}
        for setting, (keys, value) in {**wide, **own}.items():
            before = born.settings.get(setting)
            if before is not None and before != value and not has_reference(value):
                origin = query.origin if setting in own else subject.project.origin
                yield (
                    f"`{keys[-1]}: {value}` has no effect on `{query.name}`: its checkpoint was created with {before}",
                    "remove the setting, or begin a new checkpoint:"
                    f" `penstock checkpoint reset {subject.pipeline.name}.{query.name} --from earliest`",
                    origin.at(*keys),
                )


def _set_by(settings: QuerySettings | Project) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The settings of Spark that the keys of a query or a project set: the keys, the setting, the value."""
    for name, option in settings.spark.items():
        yield ("spark", name), name, to_option(option)
    if isinstance(settings, QuerySettings) and settings.watermark_policy:
        yield ("watermark_policy",), POLICY, settings.watermark_policy
    state = settings.state
    for key, setting in (("store", PROVIDER), ("format", FORMAT)):
        if state and getattr(state, key) is not None and key in state.model_fields_set:
            yield ("state", key), setting, state.settings[setting]
