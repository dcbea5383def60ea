"""A job in Flink's SQL, for an environment of its own: it imports nothing of Penstock, which is not installed there.

Its one argument is JSON: `settings`, and `statements` of which the last one is waited for.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    from pyflink.table import EnvironmentSettings, TableEnvironment

    told = json.loads(sys.argv[1])
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in told["settings"].items():
        environment.get_config().set(key, value)
    *first, last = told["statements"]
    for statement in first:
        environment.execute_sql(statement)
    environment.execute_sql(last).wait()


if __name__ == "__main__":
    main()
