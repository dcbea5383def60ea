"""Triggers as users write them."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_core import PydanticCustomError

from penstock.query.triggers import Trigger, parse


@pytest.mark.covers("trigger.interval", "trigger.once")
@pytest.mark.parametrize(
    ("written", "trigger", "ends"),
    [
        ("default", Trigger("default"), False),
        ("available_now", Trigger("available_now"), True),
        ("once", Trigger("once"), True),
        ("10 seconds", Trigger("processing_time", "10 seconds"), False),
        (Trigger("once"), Trigger("once"), True),
    ],
)
def test_reads_triggers(written: Any, trigger: Trigger, ends: bool) -> None:
    assert parse(written) == trigger
    assert trigger.ends is ends
    assert parse(str(trigger)) == trigger


@pytest.mark.parametrize("written", ["", "soon", "processing_time", 10, None, True, ["once"], {"once": True}])
def test_refuses_what_is_no_trigger(written: Any) -> None:
    with pytest.raises(PydanticCustomError, match="is not a trigger"):
        parse(written)
