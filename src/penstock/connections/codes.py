"""What the codes of connections mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "KAFKA001",
        "A Kafka cluster cannot be reached",
        "Before a run, Penstock asks the cluster for its topics. None of its servers has answered in time.",
    ),
    Code("KAFKA002", "A Kafka cluster refuses the login", "The user, the password or the mechanism is wrong."),
    Code(
        "KAFKA003",
        "A topic or partition is not there",
        "It was never made, its name is misspelled, or this user may not see it. A sink's topic must be there unless"
        " the broker makes topics by itself.",
    ),
    Code("POSTGRES001", "PostgreSQL cannot be reached", "No server answers there, or it takes no more connections."),
    Code(
        "POSTGRES002",
        "PostgreSQL refuses the login",
        "The user, the password or the database's name is not the right one.",
    ),
    Code(
        "POSTGRES005",
        "PostgreSQL refuses the batch",
        "A value is out of range, breaks a constraint or cannot be held at all. Nothing of the batch was written, and"
        " the next run stops at it again until the value is mended or left out.",
    ),
    Code(
        "POSTGRES006",
        "PostgreSQL does not permit it",
        "A sink needs INSERT, UPDATE, DELETE and SELECT on its table, as its way of writing asks for, and CREATE and"
        " USAGE on the schema `penstock_ledger`, which holds the ledger and the staging tables.",
    ),
)
