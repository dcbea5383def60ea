"""Writes docs/agreement.md from the files that `python -m tests.judge` wrote, one for each Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.judge.page import page  # noqa: E402

if __name__ == "__main__":
    reports = [json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:]]
    (ROOT / "docs/agreement.md").write_text(page(reports), encoding="utf-8")
