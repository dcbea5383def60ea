"""Ready-made processors."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.checks.rule import Finding, Subject, rule
from penstock.problems import did_you_mean
from penstock.processors import READY_MADE
from penstock.transforms.process import Process

_OWN_KEYS = ("initial", "output", "rows", "time")
"""What a ready-made processor knows by itself."""


@rule(
    "READY004",
    wrong="""
    pipeline: visits
    sources: {clicks: {type: rate, watermark: {column: timestamp, delay: 10 minutes}}}
    steps:
      sessions: {process: {of: clicks, key: [value], with: sessions, options: {time: timestamp, gap: 30 minutes}}}
    sinks: {out: {of: sessions, type: console}}
    """,
    right="""
    pipeline: visits
    sources: {clicks: {type: rate, watermark: {column: timestamp, delay: 10 minutes}}}
    steps:
      sessions: {process: {of: clicks, key: [value], with: sessionize, options: {time: timestamp, gap: 30 minutes}}}
    sinks: {out: {of: sessions, type: console}}
    """,
)
def unknown_processor(subject: Subject) -> Iterator[Finding]:
    """There is no ready-made processor of this name.

    A bare word after `with:` names a ready-made processor. Your own is named as `module:Class`.
    """
    for step in subject.pipeline.steps:
        if isinstance(step.spec, Process) and step.spec.process.is_ready_made and not step.spec.process.options_spec:
            word = step.spec.process.with_
            yield (
                f"there is no ready-made processor `{word}`{did_you_mean(word, READY_MADE)}",
                f"use one of: {', '.join(READY_MADE)}; or name your own as `module:Class`",
                step.origin.at("process", "with"),
            )


@rule(
    "READY005",
    wrong="""
    pipeline: visits
    sources: {clicks: {type: rate, watermark: {column: timestamp, delay: 10 minutes}}}
    steps:
      sessions:
        process:
          of: clicks
          key: [value]
          with: sessionize
          options: {time: timestamp, gap: 30 minutes}
          output: value LONG, started TIMESTAMP
    sinks: {out: {of: sessions, type: console}}
    """,
    right="""
    pipeline: visits
    sources: {clicks: {type: rate, watermark: {column: timestamp, delay: 10 minutes}}}
    steps:
      sessions: {process: {of: clicks, key: [value], with: sessionize, options: {time: timestamp, gap: 30 minutes}}}
    sinks: {out: {of: sessions, type: console}}
    """,
)
def key_not_for_ready_made(subject: Subject) -> Iterator[Finding]:
    """A ready-made processor knows this by itself.

    Its columns, its clock and its first state follow from its options. Only your own processor needs to be told.
    """
    for step in subject.pipeline.steps:
        if isinstance(step.spec, Process) and step.spec.process.is_ready_made:
            for key in _OWN_KEYS:
                if key in step.spec.process.model_fields_set:
                    message = f"`{step.spec.process.with_}` is ready-made, and takes no `{key}`"
                    yield message, f"remove `{key}`", step.origin.at("process", key)
