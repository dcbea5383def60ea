"""JSON Schemas of `penstock.yaml` and of pipelines, for completion and checks in editors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock import catalog
from penstock.dead_letters.leaving import dead_letter_sinks
from penstock.pipeline.model import QuerySettings
from penstock.pipeline.pipeline_spec import PipelineSpec
from penstock.pipeline.project import Overlay, ProjectSpec
from penstock.spec import Part, Spec
from penstock.transforms.functions import Function

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = {"type": "string", "pattern": r"\$\{[A-Za-z_]\w*(:-[^}]*)?\}"}


def pipeline_schema() -> dict[str, Any]:
    """The grammar of a pipeline's file."""
    schema = _schema(PipelineSpec)
    steps = [*(_schema(part) for part in catalog.steps().values()), _sql_file_step()]
    schema["properties"] |= {
        "sources": _named(_one_of(catalog.sources().values())),
        "steps": _named({"oneOf": steps}),
        "sinks": _named(
            _one_of(
                catalog.sinks().values(),
                {"of": {"type": "string", "description": "The step or source it is fed from."}},
            )
        ),
        "queries": _named(_schema(QuerySettings)),
        "functions": _named(_schema(Function)),
        "dead_letters": _one_of(dead_letter_sinks().values()),
    }
    return {"$schema": _DIALECT, "title": "A Penstock pipeline"} | schema


def project_schema() -> dict[str, Any]:
    """The grammar of `penstock.yaml`."""
    schema, overlay = _schema(ProjectSpec), _schema(Overlay)
    parts = {
        "connections": _named(_one_of(catalog.connections().values())),
        "catalogs": _named(_one_of(catalog.spark_catalogs().values())),
    }
    overlay["properties"] |= parts
    schema["properties"] |= parts | {"environments": _named(overlay)}
    return {"$schema": _DIALECT, "title": "A Penstock project"} | schema


def _schema(spec: type[Spec]) -> dict[str, Any]:
    """A spec's schema with its definitions written in place, so that schemas can be put together freely."""
    schema = spec.model_json_schema(by_alias=True)
    definitions = schema.pop("$defs", {})
    whole: dict[str, Any] = _inlined(schema, definitions)
    required = set(whole.get("required", ()))
    whole["properties"] = {key: _or_reference(value) for key, value in whole["properties"].items()}
    if "oneOf" in whole["properties"].get("format", {}):
        words = [member["properties"]["type"]["const"] for member in whole["properties"]["format"]["oneOf"]]
        whole["properties"]["format"]["oneOf"].append({"enum": words})  # `format: parquet` for short
    if "type" in whole["properties"]:
        whole["properties"]["type"] = {"const": spec.model_fields["type"].default}
        required.add("type")
    whole["required"] = sorted(required)
    return whole


def _sql_file_step() -> dict[str, Any]:
    schema = _schema(catalog.steps()["sql"])
    properties = {key: value for key, value in schema["properties"].items() if key != "sql"}
    properties["sql_file"] = {"type": "string", "description": "A file of the project that holds the SELECT."}
    return schema | {"properties": properties, "required": ["sql_file"]}


def _named(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


def _one_of(parts: Iterable[type[Part]], more: dict[str, Any] | None = None) -> dict[str, Any]:
    schemas = [_schema(part) for part in parts]
    if more:
        for schema in schemas:
            schema["properties"] = more | schema["properties"]
            schema["required"] = sorted({*schema["required"], *more})
    return {"oneOf": schemas}


def _or_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Numbers and booleans may be written as `${NAME}` too."""
    if schema.get("type") in ("integer", "number", "boolean"):
        described = {key: schema.pop(key) for key in ("description", "default") if key in schema}
        return described | {"anyOf": [schema, _REFERENCE]}
    if "anyOf" in schema and not any(member.get("type") == "string" for member in schema["anyOf"]):
        return schema | {"anyOf": [*schema["anyOf"], _REFERENCE]}
    return schema


def _inlined(value: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(value, dict):
        if "$ref" in value:
            name = value["$ref"].rpartition("/")[2]
            return _inlined(definitions[name], definitions) | {k: v for k, v in value.items() if k != "$ref"}
        dropped = ("spark_option", "title", "discriminator")
        return {
            key: _inlined(item, definitions)
            for key, item in value.items()
            if key not in dropped or (isinstance(item, dict) and key == "title")
        }
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in value]
    return value
