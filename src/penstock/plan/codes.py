"""What the codes of `penstock plan` mean."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "PLAN001",
        "A query keeps state of another kind than its checkpoint",
        "An aggregation, a join, a deduplication or another operator with state was added, removed or replaced. Spark"
        " fails after the start, and can leave files behind that make the old text fail too.",
    ),
    Code(
        "PLAN002",
        "The keys of an operator with state have changed",
        "State is stored by the grouping keys, join keys or deduplication keys, in the order in which they are written."
        " With other keys, the same keys in another order, or a key of another type, Spark starts new values beside the"
        " old ones, or mixes them up, without an error.",
    ),
    Code(
        "PLAN003",
        "The functions of an aggregation have changed",
        "State holds the values of the aggregate functions by their position. Another function, another argument, or"
        " the same functions in another order read the values of the old ones.",
    ),
    Code(
        "PLAN004",
        "A join keeps other columns than its state holds",
        "A stream-stream join stores the columns of both sides that later steps need, in order. Another column that is"
        " selected above the join changes what is stored, and Spark reads the old rows by position.",
    ),
    Code(
        "PLAN005",
        "The windows of an aggregation have changed",
        "The length, the slide, the start or the time column of a window is part of the key. Old and new windows would"
        " be mixed, with two rows for one time.",
    ),
    Code(
        "PLAN006",
        "The watermark follows another column",
        "The checkpoint holds the watermark of the old column. Rows of the new one would be late, or state would be"
        " dropped too early.",
    ),
    Code(
        "PLAN007",
        "The delay of a watermark has changed",
        "The new delay counts from here on. Rows that were dropped as late before stay dropped.",
    ),
    Code(
        "PLAN008",
        "A filter has changed",
        "Rows are filtered in the new way from here on. State keeps what the old filter let through.",
    ),
    Code(
        "PLAN009",
        "The kind or the condition of a join, or the clock of a processor, has changed",
        "Rows that the state has dropped, and matches that were written, followed the old condition. Spark refuses"
        " another kind of join only after the start.",
    ),
    Code(
        "PLAN010",
        "A query reads other streams, or in another order, than its checkpoint",
        "Spark finds the position in a stream by its number in the query. When the sides of a join or the branches of a"
        " union are swapped, or a source is added or removed, a stream resumes at the position of another one: rows are"
        " read twice or not at all.",
    ),
    Code(
        "PLAN011",
        "A source is of another type than in the checkpoint",
        "A position in a folder means nothing in a topic, and the other way round.",
    ),
    Code(
        "PLAN012",
        "A source reads another place than its checkpoint",
        "The checkpoint holds a position in the old path, topic or table.",
    ),
    Code(
        "PLAN013",
        "A source reads more topics or folders, or from other brokers",
        "A new topic is read from its first record on, and a new folder from its first file. Positions that it had are"
        " kept: other brokers must hold the same records at the same offsets.",
    ),
    Code(
        "PLAN014",
        "A sink writes to another place than before",
        "The new place gets rows from here on only. Readers of it do not find the rows that were written before.",
    ),
    Code(
        "PLAN015",
        "A sink writes to another topic or service from here on",
        "What was sent before is at the old place.",
    ),
    Code(
        "PLAN016",
        "Another type of sink writes into the folder of the old one",
        "A table inside a folder of plain files, or the reverse, hides the rows that are there.",
    ),
    Code(
        "PLAN017",
        "A sink was added to a query that has written before",
        "It gets rows from here on. The rows of earlier batches are not in it.",
    ),
    Code("PLAN018", "A sink was removed from a query", "What it has written stays where it is."),
    Code(
        "PLAN019",
        "The output mode has changed",
        "Rows are written in the new mode from here on. What is at the sink was written in the old one.",
    ),
    Code(
        "PLAN020",
        "The code of a function that state depends on has changed",
        "Keys or values in the state are results of the old code. Penstock compares the code of the function with all"
        " that it uses of the project; comments, layout and docstrings do not count.",
    ),
    Code(
        "PLAN021",
        "The code of a processor has changed",
        "It runs on the state that the old code has left. Changes of the state's columns have codes of their own"
        " (STATE001 to STATE005).",
    ),
    Code(
        "PLAN022",
        "What the state means is not known",
        "The checkpoint was written by a Penstock that kept no signature of its state, and the query has been edited"
        " since. Undo the edit and run once: then the signature is recorded.",
    ),
    Code(
        "PLAN023",
        "Columns of the output have changed",
        "Rows from here on have them; rows that were written before do not change.",
    ),
    Code("PLAN024", "A limit has changed", "The count of the rows so far is in the state."),
    Code(
        "PLAN025",
        "A starting position has no effect on a checkpoint",
        "It says where a query without a checkpoint begins. This one resumes where it stopped.",
    ),
    Code(
        "PLAN026",
        "The folder of a source has moved",
        "A checkpoint lists the files that were read by their whole paths. In another folder the same files look new"
        " and are read again.",
    ),
    Code(
        "PLAN027",
        "A change cannot be judged without Spark",
        "`--fast` compares texts. Run `penstock plan` without it.",
    ),
    Code(
        "PLAN028",
        "A static source reads another place",
        "Its rows count from here on. What is in state, or was written, was made with the old ones.",
    ),
    Code(
        "PLAN029",
        "How a sink writes has changed",
        "What was written before stays as it is: other keys, another format or other partitions hold from here on.",
    ),
    Code(
        "LEDGER002",
        "A sink is ahead of its checkpoint",
        "The sink holds a batch that the checkpoint has never planned: an older checkpoint was restored, or a ledger"
        " was changed by hand. The sink skips every batch that it has already, so the next rows would be lost. One"
        " batch ahead of the last commit is normal after a crash.",
    ),
    Code(
        "LEDGER003",
        "A sink's table is not the one that the checkpoint was created with",
        "The table was dropped, and possibly made again. The rows of all batches before are not in it, and the query"
        " would add only what comes next.",
    ),
    Code(
        "LEDGER004",
        "The log in a sink's folder belongs to another query",
        "Spark's file sink skips each batch whose number is in `_spark_metadata`. In the log of another query, or of an"
        " older generation, these numbers mean other rows.",
    ),
    Code(
        "PLAN030",
        "An operator with state reads other rows, or columns of another meaning",
        "A table that rows are looked up in, an `explode`, a union or a column that a processor reads has changed. The"
        " state was built from rows that were made in the old way.",
    ),
    Code(
        "PLAN031",
        "A source decodes its records in another way",
        "The columns keep their names and types, and what they hold comes about differently: another format of dates,"
        " other separators, another order of the columns of a CSV file. Where the query keeps state, the state holds"
        " values of the old kind, and new ones would be counted with them. Without state, rows are decoded in the new"
        " way from here on.",
    ),
    Code(
        "PLAN032",
        "The session time zone is another one",
        "`spark.sql.session.timeZone` decides which moment a text without a zone means, and to which day or hour a"
        " moment belongs. State that was built in the old zone would be mixed with rows of the new one: shifted days,"
        " windows with two meanings.",
    ),
)
