"""What the codes of checkpoints mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "CHECKPOINT003",
        "The pipeline is being run already",
        "Two runs on one checkpoint would write over each other. A lock on this machine keeps them apart.",
    ),
    Code(
        "CHECKPOINT004",
        "A manifest cannot be read",
        "It holds the settings that the checkpoint was born with, so a run cannot go on without it.",
    ),
    Code(
        "STATE001",
        "A state variable has other columns than its checkpoint",
        "What is kept in a checkpoint is read with the columns that the processor declares now. With Avro, which new"
        " checkpoints are written in, a column may be added or left out, and a number may become a wider one. Anything"
        " else cannot be read, nor can any change of a checkpoint that is not written in Avro.",
    ),
    Code(
        "STATE002",
        "A state variable is of another kind than its checkpoint has it",
        "A value, a list and a map are kept in different ways, and so is state with a TTL. Under its old name a"
        " variable stays what it is.",
    ),
    Code(
        "STATE003",
        "A step is grouped by another key than its checkpoint",
        "State belongs to a key. Under other columns, or other types, none of it would be found again.",
    ),
    Code(
        "STATE004",
        "The clock or the output mode of a step differs from its checkpoint",
        "A `process` step keeps its `time`, and its query its `mode`, for the life of a checkpoint.",
    ),
    Code(
        "STATE005",
        "A column of a state variable is gone",
        "Spark takes a changed schema whose columns have other names: the old ones are dropped, and the new ones begin"
        " empty. A renamed column therefore loses what it held.",
    ),
)
