"""Penstock: streams on Apache Spark that are declared, checked, planned, run and observed."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.api import Pipeline

__all__ = ["Pipeline"]


def __getattr__(name: str) -> Any:
    # Late, so that the command line does not import what it does not use.
    if name == "Pipeline":
        from penstock.api import Pipeline

        return Pipeline
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")
