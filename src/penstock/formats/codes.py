"""What the codes of formats mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "KAFKA005",
        "Rows do not fit Kafka's records",
        "The source or sink names a column that is not there, is there twice, or has a type that a record cannot hold.",
    ),
    Code("REGISTRY001", "A schema registry cannot be asked", "It does not answer, or refuses the login."),
    Code(
        "REGISTRY002",
        "A schema registry has no such schema",
        "Schemas are looked up under a subject: `<topic>-value`, or `<topic>-key` for keys, unless `subject` says so.",
    ),
    Code("REGISTRY003", "A file holds no Avro schema", "`schema_file` names a file with an Avro schema in JSON."),
)
