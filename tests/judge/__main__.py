"""`python -m tests.judge OUT.json`: all verdicts of the Spark that is installed here."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from penstock.engine import session
from tests.judge.cases import cases
from tests.judge.verdicts import verdicts

SETTINGS = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}


def main(out: Path, only: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-judge-") as folder:
        engine = session.start("judge", SETTINGS, Path(folder), connectors=("local-fs",))
        began = time.monotonic()
        found = [verdict.to_json() for verdict in verdicts(engine, Path(folder), [c for c in cases() if only in c.id])]
        spark = engine.spark.version
        engine.close()
    out.write_text(json.dumps({"spark": spark, "verdicts": found}, indent=1), encoding="utf-8")
    agreed = sum(verdict["agrees"] for verdict in found)
    print(f"Spark {spark}: agree {agreed} of {len(found)}, in {time.monotonic() - began:.0f} s")


main(Path(sys.argv[1]), *sys.argv[2:3])
