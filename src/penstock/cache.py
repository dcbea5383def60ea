"""What is kept between commands, in the user's cache folder. Losing it costs time only."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """PENSTOCK_CACHE, or the user's cache folder. It may not exist yet."""
    if override := environ.get("PENSTOCK_CACHE"):
        return Path(override).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("penstock")


class Remembered:
    """Plain values by text, for what is slow to find out and never changes. Written as the process ends."""

    def __init__(self, name: str, most: int = 2_000) -> None:
        self._file, self._most = cache_folder() / f"{name}.json", most
        self._known = self._read()
        self._written = len(self._known)

    def get(self, text: str) -> Any:
        """What is known of a text, or None."""
        return self._known.get(_key(text))

    def put(self, text: str, value: Any) -> None:
        if len(self._known) == self._written:
            atexit.register(self._write)
        self._known[_key(text)] = value

    def _read(self) -> dict[str, Any]:
        try:
            known = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}

    def _write(self) -> None:
        newest = dict(list(self._known.items())[-self._most :])
        draft = self._file.with_suffix(f".{os.getpid()}.tmp")
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(newest), encoding="utf-8")
            draft.replace(self._file)
        except OSError:
            draft.unlink(missing_ok=True)  # no room, or no right: then it is found out again next time


def _key(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
