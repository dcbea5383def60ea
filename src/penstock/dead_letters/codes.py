"""What the codes of dead letters mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code("DEADLETTER001", "There are no such dead letters", "Nothing was put aside, or nothing of what was asked for."),
    Code("DEADLETTER002", "An unknown dead letter or node", "An id may be cut short, while only one begins like it."),
    Code(
        "DEADLETTER003",
        "Dead letters cannot be read",
        "They are read from where the pipeline puts them: Parquet and other files, Delta, or JSON in a Kafka topic.",
    ),
    Code(
        "DEADLETTER004",
        "A file of mended letters cannot be used",
        "It holds one letter a line, as JSON, the way `penstock dead-letters export` writes it. Only `raw` is to be"
        " changed: the record itself, as a JSON string.",
    ),
    Code(
        "DEADLETTER005",
        "A dead letter cannot be put back",
        "A record goes back to the topic or the folder that it came from. Where nothing tells which record a row was"
        " made from, as for a row that a sink refused, or one of a join, there is nothing to put back.",
    ),
    Code(
        "DEADLETTER006",
        "A dead letter could not be put back",
        "The broker or the folder refused it. What was sent is noted, and the same command goes on with the rest.",
    ),
    Code(
        "DEADLETTER007",
        "The notes of replays cannot be kept or read",
        "Before letters are sent, and once more afterwards, it is noted which: so each is put back once.",
    ),
    Code("DEADLETTER008", "Another replay is under way", "Two at a time could put the same letters back twice."),
)
