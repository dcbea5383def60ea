"""Every format, by its `type`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Discriminator, Tag

from penstock.formats.csv import CsvRead, CsvWrite
from penstock.formats.format import ReadFormat, WriteFormat, from_word
from penstock.formats.json import JsonRead, JsonWrite
from penstock.formats.orc import OrcRead, OrcWrite
from penstock.formats.parquet import ParquetRead, ParquetWrite
from penstock.formats.text import TextRead, TextWrite
from penstock.formats.xml import XmlRead, XmlWrite


def _chosen(value: Any) -> Any:
    return value.get("type") if isinstance(value, dict) else getattr(value, "type", None)


# Tagged by hand: pydantic finds no tag of its own behind the validator that lets references through.
_Read = (
    Annotated[CsvRead, Tag("csv")]
    | Annotated[JsonRead, Tag("json")]
    | Annotated[OrcRead, Tag("orc")]
    | Annotated[ParquetRead, Tag("parquet")]
    | Annotated[TextRead, Tag("text")]
    | Annotated[XmlRead, Tag("xml")]
)
_Write = (
    Annotated[CsvWrite, Tag("csv")]
    | Annotated[JsonWrite, Tag("json")]
    | Annotated[OrcWrite, Tag("orc")]
    | Annotated[ParquetWrite, Tag("parquet")]
    | Annotated[TextWrite, Tag("text")]
    | Annotated[XmlWrite, Tag("xml")]
)

READ_FORMATS: tuple[type[ReadFormat], ...] = (CsvRead, JsonRead, OrcRead, ParquetRead, TextRead, XmlRead)
WRITE_FORMATS: tuple[type[WriteFormat], ...] = (CsvWrite, JsonWrite, OrcWrite, ParquetWrite, TextWrite, XmlWrite)

_BY_TYPE = Discriminator(
    _chosen,
    custom_error_type="format",
    custom_error_message="is not a format; use one of: csv, json, orc, parquet, text, xml",
)
# The word is spelled out first: annotations that stand further out are applied earlier.
AnyReadFormat = Annotated[_Read, _BY_TYPE, BeforeValidator(from_word)]
AnyWriteFormat = Annotated[_Write, _BY_TYPE, BeforeValidator(from_word)]
