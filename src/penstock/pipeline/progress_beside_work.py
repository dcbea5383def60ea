"""Whether a query can have asynchronous progress: what stands in its way, and what is chosen where nothing does.

Rules refuse what a user asks for in vain, the profile of a query asks for it by itself. Both ask here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.facts.operators import Operator
from penstock.facts.streams import is_stateful
from penstock.pipeline.model import Pipeline, Query
from penstock.query.async_progress import interval_of, lacks_cache


def is_asked(query: Query) -> bool:
    return interval_of(query.settings.async_progress) is not None


def trigger_in_the_way(query: Query) -> bool:
    """Does the query end by itself, or write its progress down in a way of its own?"""
    return not query.trigger.allows_async_progress


def sink_in_the_way(pipeline: Pipeline, query: Query) -> str | None:
    """Why its rows do not go to one Kafka topic that Spark itself writes to; None where they do."""
    other = next((sink for sink in query.sinks if not sink.spec.declared_capabilities.async_progress), None)
    if other is not None:
        return f"its sink `{other.name}` is no Kafka topic ({other.spec.type})"
    if len(query.sinks) > 1:
        return f"it has several sinks: {', '.join(f'`{sink.name}`' for sink in query.sinks)}"
    if query.sink.spec.batch_sql is not None:
        return f"its sink `{query.sink.name}` has `batch_sql`"
    if not pipeline.is_native(query):
        sources = [(one, one.spec.declared_capabilities) for one in pipeline.sources_of(query.name)]
        looking = next(one for one, can in sources if can.checks_batches or can.refuses_batches)
        return f"its source `{looking.name}` ({looking.spec.type}) looks at each batch before it is written"
    return None


def is_chosen(pipeline: Pipeline, query: Query, plan: Operator | None, settings: Mapping[str, Any]) -> bool:
    """Is it chosen for a query that does not say: with `latency: low`, and nothing in its way?

    `settings` are those of its session. Where the operators are not known, they are taken to keep no state: a promise
    is never told stronger than it is.
    """
    return (
        query.latency == "low"
        and not trigger_in_the_way(query)
        and sink_in_the_way(pipeline, query) is None
        and not (plan is not None and is_stateful(plan))
        and not lacks_cache(settings)
    )
