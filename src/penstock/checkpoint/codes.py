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
        "CHECKPOINT021",
        "A checkpoint has no manifest any more",
        "The folder of a generation has batches, and the `.json` file beside it is gone. A run would give it a new"
        " identity, or resume an older generation: sinks could not tell which batches they have.",
    ),
    Code(
        "CHECKPOINT010",
        "A file of a checkpoint cannot be read",
        "A file of `offsets`, `commits` or `sources` is empty, truncated, or not what Spark writes. Spark would fail on"
        " it after the start. `penstock checkpoint verify` lists all such files.",
    ),
    Code(
        "CHECKPOINT011",
        "A file of a checkpoint was altered",
        "Hadoop keeps sums of the files that it writes on a local disk, in `.<name>.crc` beside them. The file does not"
        " fit its sum, or the sum file is broken.",
    ),
    Code(
        "CHECKPOINT012",
        "A batch is missing in a checkpoint's log",
        "Each committed batch has its offsets in `offsets`. Without those of the newest batches Spark does not know"
        " where the next one begins.",
    ),
    Code(
        "CHECKPOINT013",
        "The files of a checkpoint contradict each other",
        "Offsets of a batch are a copy of those of another one, go back, or belong to another number of sources; or a"
        " watermark goes back. A run would read rows twice, or not at all.",
    ),
    Code(
        "CHECKPOINT014",
        "The log of a file source does not fit the offsets",
        "A file source lists the files that it has read in `sources/<number>`. If an entry is missing, or holds the"
        " files of another batch, files would be read twice or not at all.",
    ),
    Code(
        "CHECKPOINT015",
        "A file of state is missing",
        "The next batch loads the state of the last one: from a snapshot and the changes since. One of these files is"
        " not there.",
    ),
    Code(
        "CHECKPOINT016",
        "A file of state is damaged",
        "The file is empty, cannot be opened, or does not fit the sum or the size that Spark has noted.",
    ),
    Code(
        "CHECKPOINT017",
        "A file of state is a copy of another version",
        "Spark would load it without an error: the state would be that of another batch.",
    ),
    Code(
        "CHECKPOINT018",
        "The description of a state is missing or damaged",
        "Spark compares the columns of the state with those of the query, and needs `_metadata` for that.",
    ),
    Code(
        "CHECKPOINT019",
        "A checkpoint is not as the last run has left it",
        "A run leaves a seal beside the checkpoint, `0001.seal`: the number of the newest batch, and the sums of the"
        " newest files. A checkpoint that is older than its seal was restored from a backup: sinks may be ahead of it."
        " If you have restored sinks and sources to the same moment too, delete the seal and run again.",
    ),
    Code(
        "CHECKPOINT020",
        "A sum file is left over in a checkpoint",
        "With `.<name>.crc` there and its file gone, Spark fails when it writes the file. `penstock run` removes it.",
    ),
    Code(
        "CHECKPOINT027",
        "A reset was interrupted",
        "`penstock checkpoint reset --empty-output` was killed after it had made the new checkpoint and before all"
        " outputs were empty. A run on it would add rows to old ones. Running the reset again makes it whole.",
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
