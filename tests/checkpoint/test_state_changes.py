"""Which changes of a processor's state its checkpoint can follow, as Spark 4.1 answered when it was tried."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.checkpoint.state_changes import shown, state_changes
from penstock.checkpoint.state_files import processor_states
from penstock.facts.stored import ProcessorState, StateVariable
from penstock.storage.storage import LocalStorage


def columns(**types: Any) -> dict[str, Any]:
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in types.items()]
    return {"type": "struct", "fields": fields}


CARD = columns(card="string")
TOTAL = StateVariable("total", "value", CARD, (columns(n="integer"),))
PAGES = StateVariable("pages", "map", CARD, (columns(v="long"),), columns(page="string"))
BEFORE = ProcessorState("none", "append", (TOTAL, PAGES))


def told(now: ProcessorState, before: ProcessorState = BEFORE) -> list[tuple[str, str]]:
    return [(change.code, change.severity) for change in state_changes("scored", before, now)]


def with_total(**changed: Any) -> ProcessorState:
    return replace(BEFORE, variables=(replace(TOTAL, **changed), PAGES))


def array(of: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": of, "containsNull": True}


REFUSED = [("STATE001", "error")]
LOST = [("STATE005", "warning")]


@pytest.mark.covers("recovery.state-changed")
@pytest.mark.parametrize(
    ("before", "now", "avro", "others"),
    [
        (columns(n="integer"), columns(n="integer"), [], []),
        (columns(n="integer"), columns(n="long"), [], REFUSED),
        (columns(n="long"), columns(n="double"), [], REFUSED),
        (columns(n="long"), columns(n="integer"), REFUSED, REFUSED),
        (columns(n="integer"), columns(n="string"), REFUSED, REFUSED),
        (columns(n="integer"), columns(n="integer", label="string"), [], REFUSED),
        (columns(n="integer", label="string"), columns(n="integer"), LOST, REFUSED),
        (columns(n="integer"), columns(m="integer"), LOST, []),
        (columns(n=array("integer")), columns(n=array("long")), [], REFUSED),
        (columns(n=array("integer")), columns(n="integer"), REFUSED, REFUSED),
        (columns(n=columns(x="integer")), columns(n=columns(x="long", y="date")), [], REFUSED),
        (columns(n="decimal(3,1)"), columns(n="decimal(4,1)"), REFUSED, REFUSED),
    ],
)
def test_columns_may_change_as_far_as_avro_can_read_them(before, now, avro, others):
    kept = with_total(values=(before,))
    assert told(with_total(values=(now,)), kept) == avro
    assert told(with_total(values=(now,)), replace(kept, encoding="unsaferow")) == others


def test_every_version_that_is_kept_must_be_readable():
    kept = with_total(values=(columns(n="string"), columns(m="long")))
    assert told(with_total(values=(columns(m="long", n="long"),)), kept) == REFUSED


def test_a_variable_stays_of_its_kind():
    assert told(with_total(kind="list")) == [("STATE002", "error")]
    assert told(with_total(ttl=True)) == [("STATE002", "error")]
    other_key = replace(PAGES, map_key=columns(page="long"))
    assert told(replace(BEFORE, variables=(TOTAL, other_key))) == REFUSED


def test_variables_come_and_go():
    assert told(replace(BEFORE, variables=(PAGES, replace(TOTAL, name="fresh")))) == []


def test_the_key_is_told_once_and_its_names_do_not_matter():
    by_number = [replace(one, key=columns(card="long")) for one in BEFORE.variables]
    (change,) = state_changes("scored", BEFORE, replace(BEFORE, variables=tuple(by_number)))
    assert (change.code, change.keys) == ("STATE003", ("key",))
    assert change.message == "`scored` is grouped by (card LONG), and its checkpoint by (card STRING)"
    renamed = [replace(one, key=columns(number="string")) for one in BEFORE.variables]
    assert told(replace(BEFORE, variables=tuple(renamed))) == []


def test_the_clock_and_the_mode_are_fixed():
    assert told(replace(BEFORE, time="event_time", mode="update")) == [("STATE004", "error")] * 2


def test_a_schema_is_shown_as_it_is_written():
    nested = columns(a=array(columns(x="integer")), b={"type": "map", "keyType": "string", "valueType": "long"})
    assert shown(nested) == "a ARRAY<STRUCT<x INT>>, b MAP<STRING, LONG>"


def java(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode()


def family(name: str, key: Any, value: Any) -> bytes:
    parts = (struct.pack(">h", 0), chunk(key), struct.pack(">h", 0), chunk(value), chunk({}), chunk({}))
    return java(name) + b"".join(parts)


def chunk(value: Any) -> bytes:
    return struct.pack(">i", 1) + java(json.dumps(value))


def test_the_files_of_a_checkpoint_become_facts(tmp_path: Path):
    ttl = columns(value=columns(n="long"), ttlExpirationMs="long")
    versions = {"0_a": [("total", CARD, columns(n="integer"))], "3_b": [("total", CARD, columns(n="long"))]}
    versions["3_b"] += [("$ttl_brief", CARD, CARD), ("brief", CARD, ttl)]
    versions["3_b"] += [("pages", columns(key=CARD, userKey=columns(page="string")), columns(v="long"))]
    schemas = tmp_path / "state/0/_stateSchema/default"
    schemas.mkdir(parents=True)
    for name, families in versions.items():
        content = java("v3") + struct.pack(">i", len(families)) + b"".join(family(*one) for one in families)
        (schemas / name).write_bytes(content)
    kinds = {"total": "ValueState", "brief": "ListState", "pages": "MapState", "$timers": "TimerState"}
    variables = [
        {"stateName": name, "stateVariableType": kind, "ttlEnabled": name == "brief"} for name, kind in kinds.items()
    ]
    said = {
        "operatorInfo": {"operatorId": 0, "operatorName": "transformWithStateInPySparkExec"},
        "stateStoreInfo": [{"stateSchemaFilePaths": [f"file:/elsewhere/{name}" for name in versions]}],
        "operatorPropertiesJson": json.dumps(
            {"timeMode": "ProcessingTime", "outputMode": "Append", "stateVariables": variables}
        ),
    }
    for operator, name in (("0", said["operatorInfo"]["operatorName"]), ("1", "stateStoreSave")):
        metadata = tmp_path / f"state/{operator}/_metadata/v2/3"
        metadata.parent.mkdir(parents=True)
        metadata.write_text("v2\n" + json.dumps(said | {"operatorInfo": {"operatorName": name}}))
    (tmp_path / "offsets").mkdir()
    conf = {"spark.sql.streaming.stateStore.encodingFormat": "avro"}
    (tmp_path / "offsets/3").write_text("v1\n" + json.dumps({"conf": conf}) + "\n-")
    (state,) = processor_states(LocalStorage(), str(tmp_path))
    assert state == ProcessorState(
        "processing_time",
        "append",
        (
            StateVariable("total", "value", CARD, (columns(n="integer"), columns(n="long"))),
            StateVariable("brief", "list", CARD, (columns(n="long"),), ttl=True),
            StateVariable("pages", "map", CARD, (columns(v="long"),), columns(page="string")),
        ),
        "avro",
    )


def test_a_checkpoint_without_a_batch_has_no_state(tmp_path: Path):
    assert processor_states(LocalStorage(), str(tmp_path)) == ()
