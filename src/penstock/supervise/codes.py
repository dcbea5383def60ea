"""What the codes of running queries mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "CHECKPOINT007",
        "A checkpoint can only be resumed with asynchronous progress",
        "With `async_progress` Spark does not log every batch. Without it, Spark needs the log entry of the batch"
        " before the newest. Penstock fills such a gap by itself with the newest entry before it. Where that entry was"
        " deleted, only asynchronous progress can resume: with `0 seconds` it logs every batch, and after two of them"
        " the checkpoint is complete.",
    ),
    Code(
        "FILES012",
        "A file was deleted before it was read",
        "A file source notes the new files of a batch, and Spark lists them again when it reads them. It passes over a"
        " file that is gone by then, and the rows of that file are in no batch. The query is stopped. A batch that is"
        " not committed is run again at the next start, with the file if it is back. To Spark a committed file is read:"
        " it takes the same rows only under another name.",
    ),
    Code(
        "FILES014",
        "A CSV line holds only control characters",
        "Spark's CSV reader drops blank lines. It also takes a line of NULs or other control characters for blank, such"
        " as a disk leaves after a crash. No row and no bad record comes from it, so Penstock looks for such lines in"
        " the files of each batch when the batch is done. Under `on_bad_record: fail` the query stops. Under `drop` and"
        " `dead_letter` the run counts the line as bad and names its file; Spark does not hand over its text, so it is"
        " not among the dead letters. Penstock looks at local files that are plain, gzip or bzip2 and in an encoding"
        " that contains ASCII. It does not look at URLs, at `multi_line: true`, or where the format has a `mode`.",
    ),
    Code(
        "RECORD002",
        "Too many records are bad",
        "A few bad records are set aside; very many mean that something else is wrong. The batch is committed, and the"
        " query is stopped after it.",
    ),
    Code(
        "RUN003",
        "A batch fails again and again in the same way",
        "The query was restarted, and the same batch failed three times with the same cause. Such a batch holds"
        " something that the query cannot process. The message names the cause and the offsets or files that the batch"
        " reads. Fix the cause, then run again: the query resumes with this batch.",
    ),
    Code(
        "RUN004",
        "A listener of the run raised an exception",
        "Listeners get the events of a run. What one of them raises never stops a query. The first exception of each is"
        " reported when the run ends.",
    ),
    Code(
        "RUN005",
        "A query was skipped because one that feeds it has failed",
        "`run --once` runs queries that feed each other one after the other. Where one fails, those behind it are"
        " skipped: a join would miss rows that are still to come. Others run, and the exit code is 3. The next run"
        " resumes all of them where they were.",
    ),
    Code(
        "RUN006",
        "A query was not run because the run was stopped before its turn",
        "`run --once` runs queries that feed each other one after the other, and it was asked to stop in between.",
    ),
    Code(
        "RECORD005",
        "Dead letters and the data path disagree",
        "The data path filters, and a query of its own writes the dead letters. Both have read the same rows, and yet"
        " they count different ones: a record is possibly missing, or written twice.",
    ),
)
