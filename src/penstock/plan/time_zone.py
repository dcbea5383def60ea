"""The session time zone against the one that state was built in. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from penstock.facts.signature import Signature, StateOperator
from penstock.plan.verdict import PlanFinding
from penstock.problems import Where

_UTC = frozenset({"utc", "z", "gmt", "etc/utc", "etc/gmt", "zulu", "etc/zulu", "universal", "uct", "+00:00", "-00:00"})
_TIMED = frozenset({"timestamp", "date"})
"""Types of columns that a source makes from text, or that become days and hours, by the session's zone."""
_READS_TIME = re.compile(
    r"\b(?:cast|to_|from_|date|timestamp|trunc|year|quarter|month|week|day|hour|minute|second|unix|window|make_)",
    re.IGNORECASE,
)


def zone_findings(before: Signature, zone: str, query: str, reset: str, where: Where | None) -> Iterator[PlanFinding]:
    """Only state is judged: rows of a query without state follow the new zone from here on."""
    if not before.zone or _normal(before.zone) == _normal(zone):
        return
    timed = any(_is_timed(one, before) for one in before.operators)
    if not timed and not before.watermarks:
        return
    message = f"the session time zone is {zone}, and the state of `{query}` was built with {before.zone}"
    fix = (
        f"set `spark.sql.session.timeZone: {before.zone}`; or run `{reset}` to build the state from all input; or, if"
        " no time of the query depends on the zone, set `accept: [PLAN032]` on the query"
    )
    yield PlanFinding("PLAN032", query, message, fix, "restart", where, before.zone, zone)


def _is_timed(operator: StateOperator, signature: Signature) -> bool:
    stored = (column for side in operator.stored for column in side)
    texts = " ".join((*operator.keys, *operator.functions, *stored, operator.detail, operator.condition, operator.rows))
    columns = (name for name, kind in signature.types.items() if kind in _TIMED)
    return bool(_READS_TIME.search(texts)) or any(name in texts for name in columns)


def _normal(zone: str) -> str:
    return "utc" if zone.lower() in _UTC else zone
