"""A query as operators, from what the user wrote alone."""

from __future__ import annotations

from penstock.facts.operators import Expression, Operator
from penstock.pipeline.model import Pipeline, Source
from penstock.query.watermark import Watermark


def plan_of_query(pipeline: Pipeline, name: str) -> Operator | None:
    """The operators that make the rows of a node; None where only Spark can tell, as of a Python step."""
    made: dict[str, Operator] = {}
    for node in pipeline.upstream(name):
        if isinstance(node, Source):
            operator = Operator("source", node.name, streams=not node.spec.is_static, name=node.spec.type)
        else:
            inputs = {one: made[one] for one in node.inputs if one in made}
            found = node.spec.plan(node.name, inputs) if len(inputs) == len(node.inputs) else None
            if found is None:
                return None
            operator = found
        made[node.name] = _watched(operator, node.name, node.spec.watermark)
    return made.get(name)


def _watched(operator: Operator, node: str, watermark: Watermark | None) -> Operator:
    if watermark is None:
        return operator
    column = Expression(f"{node}.{watermark.column.lower()}", "column")
    return Operator("watermark", node, (operator,), keys=(column,))
