"""XML, one element a row."""

from __future__ import annotations

from typing import ClassVar, Literal

from penstock.formats.format import ReadFormat, WriteFormat
from penstock.formats.textual import Characters, Compressed, DateInference, DateTimes, DecimalInference, Parsing
from penstock.notation.paths import PathText
from penstock.spec import Spec, spark_option

_NO_BRACKETS = r"^[^<>]+$"


class XmlShape(Spec):
    """How elements, attributes and text become columns, and columns those."""

    row_tag: str = spark_option(..., "Name of the element that is one row, without brackets.", pattern=_NO_BRACKETS)
    attribute_prefix: str | None = spark_option(
        None, "Tells columns that are attributes from those that are elements. Spark's default: `_`."
    )
    value_tag: str | None = spark_option(
        None, "Column for the text of an element that has attributes too. Spark's default: `_VALUE`.", min_length=1
    )
    null_value: str | None = spark_option(
        None, "The text that stands for NULL. Spark's default: none; a NULL is left out in writing."
    )


class XmlRead(XmlShape, Characters, DateTimes, DateInference, DecimalInference, Parsing, ReadFormat):
    """Rows from the `row_tag` elements of XML files, by name. What lies outside of them is not read.

    - An attribute is a column with `_` before its name, unless `attribute_prefix` says otherwise.
    - A prefix such as `n:` is part of a column's name unless `ignore_namespace: true`.
    - An element that may repeat must be an ARRAY in `schema`, or only its last value is kept.
    - A malformed row is for `mode` to judge.
    """

    type: Literal["xml"] = "xml"
    infer_schema: bool | None = spark_option(
        None, "With `schema: infer`, guesses types too; false leaves them STRING. Spark's default: true."
    )
    multi_line: bool | None = spark_option(
        None, "Rows may run over several lines; false takes every line for one whole row. Spark's default: true."
    )
    exclude_attribute: bool | None = spark_option(None, "Leaves attributes unread. Spark's default: false.")
    ignore_surrounding_spaces: bool | None = spark_option(
        None, "Cuts blanks and line breaks around values. Spark's default: true."
    )
    ignore_namespace: bool | None = spark_option(
        None, "Drops namespace prefixes from the names of elements and attributes. Spark's default: false."
    )
    row_validation_xsd_path: PathText | None = spark_option(
        None,
        "XSD file that each row must obey, or it counts as malformed; it gives no types. Spark's default: none.",
        name="rowValidationXSDPath",
        min_length=1,
    )
    wildcard_col_name: str | None = spark_option(
        None, "Column of `schema` that takes the elements it does not name. Spark's default: `xs_any`.", min_length=1
    )
    use_legacy_xml_parser: bool | None = spark_option(
        None, "Uses the parser that Spark had before 4.1. Spark's default: false.", name="useLegacyXMLParser"
    )

    example: ClassVar[str] = "{type: xml, row_tag: order, schema: '_id BIGINT, item ARRAY<STRING>'}"


class XmlWrite(XmlShape, Characters, DateTimes, Compressed, WriteFormat):
    """Rows as `row_tag` elements below one root element a file.

    - A column whose name starts with `attribute_prefix` becomes an attribute.
    - A NULL is left out of its row, unless `null_value` says how to write it.
    - `declaration` says UTF-8 whatever `encoding` says: change the two together.
    """

    type: Literal["xml"] = "xml"
    root_tag: str | None = spark_option(
        None,
        "Name of the element around all rows, with attributes if need be. Spark's default: `ROWS`.",
        pattern=_NO_BRACKETS,
    )
    declaration: str | None = spark_option(
        None,
        "What the XML declaration of each file says, without brackets; empty writes none. "
        """Spark's default: `version="1.0" encoding="UTF-8" standalone="yes"`.""",
        pattern=r"^[^<>]*$",
    )
    array_element_name: str | None = spark_option(
        None, "Name for the elements of an array inside an array. Spark's default: `item`.", min_length=1
    )
    indent: str | None = spark_option(
        None,
        "Blanks of one level of indentation; empty puts a row on one line. Spark's default: four.",
        pattern=r"^\s*$",
    )
    validate_name: bool | None = spark_option(
        None, "Fails when a column's name cannot be the name of an element. Spark's default: true."
    )
    single_variant_column: str | None = spark_option(
        None, "The one VARIANT column whose fields become each row's elements. Spark's default: off.", min_length=1
    )

    example: ClassVar[str] = "{type: xml, row_tag: order, root_tag: orders, compression: gzip}"
