"""`python -m tests.judge OUT.json [--every]`: all verdicts of the Spark that is installed here.

With `--every`, each case that Spark's checker accepts is started; without, only what a start decides.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from penstock.engine import session
from penstock.engine.broker import Broker
from tests.conftest import QUICK_JVM
from tests.judge.cases import cases
from tests.judge.verdicts import Starts, verdicts
from tests.services import create_topic

# More slots than cores: a query in continuous or real time holds its own.
SETTINGS = {"spark.master": "local[8]", "spark.driver.extraJavaOptions": QUICK_JVM}


def main(out: Path, *, every: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-judge-") as folder, ExitStack() as cleanup:
        broker = cleanup.enter_context(Broker(Path(folder) / "kafka", auto_create_topics=False))
        os.environ["JUDGE_KAFKA"] = broker.servers
        for topic in ("a", "b", "out"):
            create_topic(broker.servers, topic)
        engine = session.start("judge", SETTINGS, Path(folder), connectors=("kafka", "local-fs"))
        began = time.monotonic()
        starts = Starts(every)
        found = [verdict.to_json() for verdict in verdicts(engine, Path(folder), cases(), starts)]
        spark = engine.spark.version
        engine.close()
    out.write_text(json.dumps({"spark": spark, "starts": starts.count, "verdicts": found}, indent=1), encoding="utf-8")
    agreed = sum(verdict["agrees"] for verdict in found)
    print(
        f"Spark {spark}: agree {agreed} of {len(found)} with {starts.count} starts, in {time.monotonic() - began:.0f} s"
    )


main(Path(sys.argv[1]), every="--every" in sys.argv)
