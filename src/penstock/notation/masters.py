"""Masters of Spark, as `spark.master` names them."""

from __future__ import annotations

import re

MASTER = "spark.master"
_ONE_MACHINE = re.compile(r"local(\[|-cluster\[|$)")


def is_one_machine(master: str) -> bool:
    """Do all tasks run on the driver's machine? `local-cluster[…]` starts its executors there too, on the same disk."""
    return _ONE_MACHINE.match(master) is not None
