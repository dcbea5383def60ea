"""Every module has its layer: one that `.importlinter` forgets could import what it likes."""

import re
from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_module_stands_on_a_layer() -> None:
    contracts = ConfigParser()
    contracts.read(ROOT / ".importlinter")
    layers = set(re.split(r"[\s|]+", contracts["importlinter:contract:layers"]["layers"].strip()))
    files = [file.relative_to(ROOT / "src") for file in (ROOT / "src/penstock").rglob("*.py")]
    modules = {
        ".".join(file.with_suffix("").parts) for file in files if file.name not in ("__init__.py", "__main__.py")
    }
    on_layers = {module for module in modules if any(f"{module}.".startswith(f"{layer}.") for layer in layers)}
    assert {module for module in modules - on_layers if not module.startswith("penstock.templates.")} == set()
