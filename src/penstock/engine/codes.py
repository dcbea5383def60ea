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
        " and the next run stops at it again until it is mended, dropped or put aside.",
    ),
    Code("RECORD003", "A dead letter cannot be kept", "The place where dead letters go has refused it."),
    Code(
        "RECORD006",
        "Dead letters cannot leave with the rows of this query",
        "A query that keeps state has one output, after its aggregation, and a bad record is found before it. Other"
        " queries can do it where Spark's own Kafka sink writes them, without `batch_sql`.",
    ),
    Code(
        "RUN001",
        "A query failed",
        "The run ends, and the other queries with it. The next run goes on from the last committed batch.",
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
