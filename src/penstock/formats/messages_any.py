"""Every format of messages, by its `type`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from penstock.formats.format import from_word
from penstock.formats.messages import (
    CsvMessageRead,
    JsonMessageRead,
    JsonMessageWrite,
    RawMessageRead,
    RawMessageWrite,
    TextMessageRead,
    TextMessageWrite,
)
from penstock.formats.messages_avro import AvroMessageRead, AvroMessageWrite

_Read = (
    Annotated[JsonMessageRead, Tag("json")]  # first: where a key is missing, the first one explains it
    | Annotated[AvroMessageRead, Tag("avro")]
    | Annotated[CsvMessageRead, Tag("csv")]
    | Annotated[RawMessageRead, Tag("raw")]
    | Annotated[TextMessageRead, Tag("text")]
)
_Write = (
    Annotated[AvroMessageWrite, Tag("avro")]
    | Annotated[JsonMessageWrite, Tag("json")]
    | Annotated[RawMessageWrite, Tag("raw")]
    | Annotated[TextMessageWrite, Tag("text")]
)
MESSAGE_READ_FORMATS = (AvroMessageRead, CsvMessageRead, JsonMessageRead, RawMessageRead, TextMessageRead)
MESSAGE_WRITE_FORMATS = (AvroMessageWrite, JsonMessageWrite, RawMessageWrite, TextMessageWrite)


def _chosen(value: Any) -> Any:
    return value.get("type") if isinstance(value, dict) else getattr(value, "type", None)


def _by_type(words: str) -> Discriminator:
    said = f"is not a format of messages; use one of: {words}"
    return Discriminator(_chosen, custom_error_type="format", custom_error_message=said)


# The word is spelled out first: annotations that stand further out are applied earlier.
AnyMessageRead = Annotated[_Read, _by_type("avro, csv, json, raw, text"), BeforeValidator(from_word)]
AnyMessageWrite = Annotated[_Write, _by_type("avro, json, raw, text"), BeforeValidator(from_word)]
