"""Ready-made stateful processors: the word that names each, its options, and its class, which needs Spark."""

from penstock.spec import Spec

READY_MADE: dict[str, tuple[type[Spec], str]] = {}
"""By word: the spec of its options, and `module:Class`, imported only when it is built."""
