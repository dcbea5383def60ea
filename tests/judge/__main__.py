"""`python -m tests.judge OUT.json`: all verdicts of the Spark that is installed here."""

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
from tests.judge.cases import cases
from tests.judge.verdicts import verdicts
from tests.services import create_topic

# More slots than cores: a query in continuous or real time holds its own.
SETTINGS = {"spark.master": "local[8]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def main(out: Path, only: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-judge-") as folder, ExitStack() as cleanup:
        broker = cleanup.enter_context(Broker(Path(folder) / "kafka", auto_create_topics=False))
        os.environ["JUDGE_KAFKA"] = broker.servers
        for topic in ("a", "b", "out"):
            create_topic(broker.servers, topic)
        engine = session.start("judge", SETTINGS, Path(folder), connectors=("kafka", "local-fs"))
        began = time.monotonic()
        found = [verdict.to_json() for verdict in verdicts(engine, Path(folder), [c for c in cases() if only in c.id])]
        spark = engine.spark.version
        engine.close()
    out.write_text(json.dumps({"spark": spark, "verdicts": found}, indent=1), encoding="utf-8")
    agreed = sum(verdict["agrees"] for verdict in found)
    print(f"Spark {spark}: agree {agreed} of {len(found)}, in {time.monotonic() - began:.0f} s")


main(Path(sys.argv[1]), *sys.argv[2:3])
