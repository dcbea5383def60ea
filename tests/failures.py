"""What stopped a query, as a source gets to see it."""

from __future__ import annotations

from typing import Any

from penstock.engine.causes import classify
from penstock.facts.failure import Failure
from penstock.facts.thrown import Thrown
from penstock.problems import Problem
from penstock.spark_internals import thrown_by, thrown_by_query


def failure(chain: tuple[Thrown, ...]) -> Failure:
    cause = classify(chain)
    problem = Problem("RUN001", cause.root.message, "")
    condition = cause.link.condition
    return Failure(cause.kind, problem, "", paths=cause.paths, columns=cause.columns, condition=condition)


def of_query(query: Any) -> Failure:
    return failure(thrown_by_query(query))


def of_error(error: BaseException) -> Failure:
    return failure(thrown_by(error))
