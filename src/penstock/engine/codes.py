"""What the codes of the engine mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

CODES: tuple[Code, ...] = (
    Code(
        "DEV001",
        "The broker's port cannot be used",
        "Another program listens there, most often another broker, or the port needs rights that this user lacks.",
    ),
    Code(
        "DEV002",
        "The broker's folder is in use",
        "Two brokers on one folder would spoil each other's data. The running one holds a lock on it.",
    ),
    Code(
        "DEV003",
        "The broker's folder cannot be written",
        "The broker keeps topics, settings and its log there.",
    ),
    Code(
        "DEV004",
        "The broker does not start",
        "Its process ended, or took no connection in time. The message holds the end of its log.",
    ),
    Code("ENGINE001", "There is no Java", "Spark runs on Java 17 or newer."),
    Code("ENGINE002", "Java is too old", "Spark 4 needs Java 17 or newer."),
    Code(
        "ENGINE003",
        "A connector cannot be had for this Spark",
        "Each Spark version has its own connectors; some do not exist for all.",
    ),
    Code(
        "ENGINE004",
        "Connector jars could not be fetched",
        "They are fetched once, when a pipeline first needs them, and then kept in a cache.",
    ),
    Code(
        "ENGINE005",
        "A connector jar is not the one that is locked",
        "Its checksum differs from the one in Penstock's lock file. It is not used.",
    ),
    Code(
        "ENGINE006",
        "This Spark is not supported",
        "Penstock knows which Spark can do what, and says so before a query starts.",
    ),
    Code(
        "ENGINE007",
        "Spark cannot start",
        "Most often a setting of the process is wrong, or the memory does not suffice.",
    ),
    Code(
        "EXPECT001",
        "A step that keeps state has expectations",
        "A row of an aggregation changes from batch to batch: what fails now may hold later.",
    ),
    Code(
        "FAILURE001",
        "A checkpoint file is damaged or missing",
        "Spark writes what it has read, and the state, into files of the checkpoint. One that is empty, cut off or gone"
        " stops the query: without it Spark would read rows twice or leave some out. A full disk and a machine that"
        " lost power are the most common causes.",
    ),
    Code(
        "FAILURE002",
        "A checkpoint does not fit the query any more",
        "The checkpoint holds state or offsets of another form of the query: other keys, aggregates, types or sources."
        " Spark cannot read that state under the new query.",
    ),
    Code(
        "FAILURE003",
        "A file cannot be read",
        "The file is cut off, overwritten, of another format, or has a column in another type than the schema. The"
        " message names the file and what its reader reports.",
    ),
    Code(
        "FAILURE004",
        "A file is gone before it was read",
        "A batch was to read a file that somebody has moved or deleted since Spark listed the folder. Files must stay"
        " until their batch is committed.",
    ),
    Code(
        "FAILURE005",
        "A source or sink cannot be reached",
        "A broker, a database, a server or an object store does not answer. Penstock restarts the query with growing"
        " delays, as `restarts:` says, and reports this when they are used up.",
    ),
    Code(
        "FAILURE006",
        "Code of yours fails in a query",
        "A Python function of the pipeline raised an exception while Spark ran it. The message names the file and the"
        " line, and what was raised. Nothing of the batch is committed.",
    ),
    Code(
        "FAILURE007",
        "A worker died",
        "A Python worker or an executor ended in the middle of a task. Most often the system killed it for its memory."
        " Penstock restarts the query, as `restarts:` says, and reports this when that does not help.",
    ),
    Code(
        "FAILURE008",
        "Memory did not suffice",
        "A batch needed more memory than Spark has. Penstock restarts the query, as `restarts:` says, and reports this"
        " when that does not help.",
    ),
    Code(
        "FAILURE009",
        "A disk is full",
        "The checkpoint, the sink or Spark's own temporary files have no space left. Penstock waits, as `restarts:`"
        " says, and resumes when there is space again.",
    ),
    Code(
        "FAILURE010",
        "An expression fails on a value",
        "Under ANSI rules a cast, a division or an index that is not possible is an error and not a NULL. So one row"
        " stops the query. The message shows the value, and the place is that of the expression.",
    ),
    Code(
        "FUNCTION002",
        "A declared function cannot be made",
        "Its module or name is wrong, or the type that it `returns` is none of Spark's.",
    ),
    Code(
        "PROCESS007",
        "The `init` of a processor fails",
        "Spark calls `init` before the first row, on the driver and in every task. It names the state variables and"
        " does nothing else that can fail.",
    ),
    Code(
        "PROCESS008",
        "State with a TTL needs processing time",
        "A TTL is counted by the machine's clock, in the time of the batch. Spark refuses it under event time, and"
        " where there is no time at all.",
    ),
    Code(
        "RECORD001",
        "A bad record stops the query",
        "The record cannot be decoded, or fails an expectation whose word is `fail`. Nothing of its batch is committed,"
        " and the next run stops at it again until it is fixed, dropped or set aside.",
    ),
    Code("RECORD003", "A dead letter cannot be kept", "The place where dead letters go has refused it."),
    Code(
        "RECORD006",
        "Dead letters cannot leave with the rows of this query",
        "A query that keeps state has one output, after its aggregation, and a bad record is found before it. Other"
        " queries can do it where Spark's own Kafka sink writes them, without `batch_sql`.",
    ),
    Code(
        "REGISTRY004",
        "A record has a schema that the registry lacks",
        "Each record carries the id of the schema that it was written with. Penstock fetches the schemas when a query"
        " starts, and again when a record has an id that is not among them. The registry does not have this one for the"
        " topic's subject.",
    ),
    Code(
        "RUN001",
        "A query failed",
        "The cause does not pass by itself, or the query failed again after its last restart. `on_failure` decides"
        " whether the other queries of its pipeline stop too; other pipelines run on. The exit code is 3. The next run"
        " resumes after the last committed batch.",
    ),
    Code(
        "RUN002",
        "Spark has died",
        "Its process was killed from outside, or ran out of memory. Nothing that was committed is lost.",
    ),
    Code(
        "SPARK001",
        "Spark refuses a source",
        "The source cannot be read as it is declared: its schema, path, options or format.",
    ),
    Code("SPARK002", "Spark refuses a step", "Spark's analyser has read the step and found a mistake at this line."),
    Code("SPARK003", "Spark refuses a sink", "The query could not be started on its sink."),
    Code(
        "SPARK004",
        "Spark cannot stream this",
        "The same query works on a table, but not on a stream in this output mode.",
    ),
    Code("SPARK005", "A Python step fails", "The function raised while it was building its DataFrame."),
    Code("SPARK006", "A query reads no stream", "All its sources are static: there is nothing to wait for."),
    Code(
        "STORE003",
        "The class of a state store is not found",
        "A provider of your own must be on Spark's class path before a query starts.",
    ),
    Code(
        "VARIABLE001",
        "A variable is not set",
        "`${NAME}` without a default needs a value from the environment or from `variables:`.",
    ),
    Code(
        "VARIABLE002",
        "A variable has a wrong value",
        "A reference may stand for any type; what it resolves to is judged before Spark sees it.",
    ),
)
