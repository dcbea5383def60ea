"""What the codes mean that no rule raises: they come up while something is read, resolved, started or run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """A code with its page in the docs."""

    code: str
    title: str
    why: str
    wrong: str = ""
    right: str = ""


_GOOD = """\
pipeline: words
sources: {lines: {type: files, path: in, format: text}}
sinks: {out: {of: lines, type: console}}"""

CODES: tuple[Code, ...] = (
    Code(
        "DEDUPLICATE001",
        "A key of `deduplicate` is no column",
        "Duplicates are found by columns that the rows have.",
    ),
    Code(
        "STORE003",
        "The class of a state store is not found",
        "A provider of your own must be on Spark's class path before a query starts.",
    ),
    Code(
        "CRASH001",
        "An unknown crash point",
        "`PENSTOCK_CRASH` names the place at which a test crashes a run, as `point` or `point:N`.",
    ),
    Code("BENCH001", "An unknown workload", "`penstock bench --list` names all of them."),
    Code("BENCH002", "An unknown contender", "`penstock bench --list` names all of them."),
    Code(
        "BENCH003",
        "The results of a benchmark cannot be written",
        "The folder of `--out` is looked at before anything is measured.",
    ),
    Code(
        "BENCH004",
        "A contender cannot be had",
        "Flink is installed on demand, in a virtual environment of its own in the user's cache. Without it the others"
        " are measured all the same.",
    ),
    Code(
        "CHECKPOINT007",
        "A checkpoint can only be gone on with by asynchronous progress",
        "With `async_progress` not every batch is written down. Going on without it, Spark asks for the batch before"
        " the newest; Penstock closes such a gap by itself with the newest one before it. Where that one was deleted,"
        " only asynchronous progress can go on: with `0 seconds` it writes down every batch, and after two of them the"
        " checkpoint is whole.",
    ),
    Code("CHECK001", "A report cannot be written", "The folder of the file is not there, or may not be written to."),
    Code(
        "STEP001",
        "A Python step asks for rows while it is declared",
        "A step says how rows are made; it is called once, before there are any. `count()`, `show()` and `collect()`"
        " want rows now, and a stream has no end to wait for. Spark refuses them.",
    ),
    Code("SPEC001", "A file cannot be read", "The file is not there, or this user may not read it."),
    Code(
        "SPEC002", "A file is empty", "A pipeline needs at least a name, a source and a sink.", "# nothing here", _GOOD
    ),
    Code(
        "SPEC003",
        "A key is not a word",
        "Before each colon stands a plain word. Lists and mappings cannot be keys, and `<<` takes a mapping.",
        "pipeline: words\n? [a, b]\n: 1",
        _GOOD,
    ),
    Code(
        "SPEC004",
        "A key stands twice",
        "YAML would keep the second and drop the first without a word. Penstock refuses both.",
        "pipeline: words\npipeline: lines",
        _GOOD,
    ),
    Code(
        "SPEC005",
        "The text is not YAML",
        "Most often a tab, a missing space after a colon, or a text with `:` or `#` that needs quotes.",
        "pipeline: words\nsources: {lines: {type: files",
        _GOOD,
    ),
    Code(
        "SPEC006",
        "A file is refused",
        "Penstock reads plain YAML only: UTF-8 text, at most 1 MB, without `!` tags, 50 levels deep at most, and no"
        " aliases that multiply without end. What could run code or fill the memory is not opened at all.",
        "pipeline: !!python/name:os.system words",
        _GOOD,
    ),
    Code(
        "SPEC007",
        "An unknown key",
        "Every key is known, and a misspelled one would silently do nothing. Options without a key of their own go"
        " under `spark_options`.",
        _GOOD.replace("path: in", "paht: in"),
        _GOOD,
    ),
    Code("SPEC008", "A key is missing", "The part cannot work without it.", _GOOD.replace("path: in, ", ""), _GOOD),
    Code(
        "SPEC009",
        "A value is wrong",
        "It has another type than the key takes, or is none of the allowed words.",
        _GOOD.replace("path: in", "path: [in]"),
        _GOOD,
    ),
    Code(
        "SPEC010",
        "An unknown type",
        "No source, sink, connection or catalog of that type is installed.",
        _GOOD.replace("type: files", "type: flies"),
        _GOOD,
    ),
    Code("SPEC011", "A SQL file lies outside the project", "A project must mean the same wherever it is checked out."),
    Code(
        "SPEC012",
        "A Python function is not found",
        "`python: module:function` names a function of a module in the project.",
    ),
    Code(
        "SPEC013",
        "A step is of two kinds",
        "A step is SQL or Python. Make two steps, one reading from the other.",
        _GOOD + "\nsteps: {both: {sql: SELECT 1, sql_file: one.sql}}",
        _GOOD,
    ),
    Code("SPEC014", "A Python file fails when it is imported", "A pipeline in Python is made by importing its module."),
    Code("EXPLAIN001", "An unknown code", "`penstock explain` without a code lists all of them."),
    Code("PROJECT001", "There is no project here", "A project is a folder with `penstock.yaml`."),
    Code("PROJECT002", "An unknown environment", "`--env` takes a name from `environments:` in penstock.yaml."),
    Code("PROJECT003", "The project has no pipelines", "Pipelines are files in the folder `pipelines`."),
    Code("PROJECT004", "An unknown pipeline", "Pipelines are named by their `pipeline:` key, not by their file."),
    Code("PROJECT006", "A folder is not empty", "`penstock init` never overwrites a file."),
    Code(
        "PROJECT009",
        "A file cannot be read or written",
        "The disk is full, the file is not there, or this user may not use it.",
    ),
    Code("PROJECT008", "A folder cannot be looked at", "It is not there, or this user may not read it."),
    Code("PROJECT007", "An unknown step", "`penstock show` takes the name of a source or step."),
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
        "SPARK007",
        "A listener cannot be added",
        "`listeners:` names classes of type StreamingQueryListener that take no arguments.",
    ),
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
    Code("DEV005", "A topic cannot have this name", "Kafka takes letters, digits, dots, dashes and underscores."),
    Code("DEV006", "A topic cannot be made", "The broker refused it, and says why."),
    Code("DEV007", "The broker has ended by itself", "It was killed from outside, or ran out of memory or disk."),
    Code(
        "LEDGER001",
        "A note of a batch cannot be kept or read",
        "Where a sink has no ledger of its own, Penstock notes in the checkpoint which batch is done. Without the notes"
        " it would not know, after a crash, what was written already.",
    ),
    Code(
        "HTTP001",
        "An HTTP server cannot be reached",
        "Before a run, Penstock opens a connection to the server, or to the proxy, and sends nothing.",
    ),
    Code(
        "HTTP002",
        "Requests do not get through",
        "The server was busy, broken or out of reach until the retries were used up. The batch is not done, and is sent"
        " again on the next run, each record under the same idempotency key.",
    ),
    Code(
        "HTTP003",
        "An HTTP server turns the pipeline away",
        "The answer is about the address or the credentials, not about the record: every record would get it. So none"
        " is put aside, and the batch fails. `stop_on` says which answers are of this kind.",
    ),
    Code(
        "HTTP004",
        "Rows cannot be made into requests",
        "The sink names a column that the rows do not have, or one of a type that no request can hold.",
    ),
    Code("PYTHON001", "The function of a Python sink fails", "It raised, so the batch is not done: it is run again."),
    Code(
        "PYTHON002",
        "A Python sink names nothing that can be called",
        "`each_batch` names a function of two parameters, the rows and the batch. `foreach` names a function of a row,"
        " or a class with a method `process` that takes one.",
    ),
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
    Code(
        "KAFKA004",
        "Records are gone before they were read",
        "The topic's retention, or somebody, has deleted records that the checkpoint has not read yet, or the topic was"
        " deleted and made anew. To go on behind the gap without a word would hide the loss.",
    ),
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
    Code(
        "SINK005",
        "A batch holds several rows of one key",
        "An upsert keeps one row for each key, and nothing says which of the two. The batch is not written.",
    ),
    Code("POSTGRES001", "PostgreSQL cannot be reached", "No server answers there, or it takes no more connections."),
    Code(
        "POSTGRES002",
        "PostgreSQL refuses the login",
        "The user, the password or the database's name is not the right one.",
    ),
    Code(
        "POSTGRES003",
        "A table is not there",
        "Names are taken in the very case they are written in: PostgreSQL itself lowers those without quotes.",
    ),
    Code(
        "POSTGRES004",
        "The rows do not fit the table",
        "Columns go by name. Each column of the rows must be in the table with a type that takes it, and each column"
        " that the table must have must be in the rows.",
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
    Code(
        "POSTGRES007",
        "Staged rows are gone",
        "The server crashed while a batch was under way, or another run has used the same staging table. The batch was"
        " not written; the next run stages it anew.",
    ),
    Code(
        "POSTGRES008",
        "PostgreSQL refuses a query",
        "`query` of a source is PostgreSQL's own SQL, and it cannot be run.",
    ),
    Code("DELTA001", "There is no such Delta table", "A stream reads a table that is there, for it takes its columns."),
    Code(
        "DELTA002",
        "Rows do not fit into a Delta table",
        "The sink names a column that the rows do not have, the table lacks a column of the rows or needs one that they"
        " do not have, or a type differs. With `merge_schema: true` the table gets the columns that it lacks.",
    ),
    Code(
        "DELTA003",
        "A Delta table cannot be made or opened",
        "There is a table of another format, files that belong to none, or a name that Delta does not take. For columns"
        " with spaces set `table_properties: {delta.columnMapping.mode: name}`.",
    ),
    Code(
        "DELTA004",
        "A Delta table does not record changes",
        "A change feed holds what was recorded when the change was made; it cannot be asked for afterwards.",
    ),
    Code("ICEBERG001", "There is no such Iceberg table", "Neither the table nor, it may be, its catalog is known."),
    Code(
        "ICEBERG002",
        "Rows do not fit into an Iceberg table",
        "The sink names a column that the rows do not have, the table lacks a column of the rows or needs one that they"
        " do not have, or a type differs. With `merge_schema: true` the table gets the columns that it lacks.",
    ),
    Code(
        "ICEBERG003",
        "An Iceberg table cannot be made or opened",
        "Its catalog is not declared in penstock.yaml, or refuses it.",
    ),
    Code(
        "ICEBERG004",
        "An Iceberg table does not keep a snapshot",
        "Snapshots expire. A stream that should begin at one that is gone would begin elsewhere without a word.",
    ),
    Code(
        "JDBC001",
        "A database cannot be reached",
        "No driver takes the URL, no server answers there, or it refuses the login.",
    ),
    Code("JDBC002", "A table cannot be read", "The sink adds rows to a table; it does not make one."),
    Code(
        "JDBC003",
        "The rows have a column that the table has not",
        "Columns go by name. Case is not looked at, unless the table has two columns that differ in it alone.",
    ),
    Code(
        "JDBC004",
        "The ledger cannot be made",
        "The table `penstock_ledger` notes which batch is written. Without it a batch may be written twice.",
    ),
    Code(
        "JDBC005",
        "A database refuses the batch",
        "A value does not fit, breaks a constraint, or has a type that the database does not turn into the column's."
        " Nothing of the batch is in the table.",
    ),
    Code(
        "JDBC006",
        "Staged rows are gone",
        "Another run has used the same staging table. The batch was not written; the next run stages it anew.",
    ),
    Code(
        "RECORD001",
        "A bad record stops the query",
        "The record cannot be decoded, or fails an expectation whose word is `fail`. Nothing of its batch is committed,"
        " and the next run stops at it again until it is mended, dropped or put aside.",
    ),
    Code(
        "RECORD002",
        "Too many records are bad",
        "A few bad records are put aside; very many mean that something else is wrong. The batch is committed, and the"
        " query is stopped after it.",
    ),
    Code(
        "RECORD005",
        "Dead letters and the data path disagree",
        "The data path filters, and a query of its own writes the dead letters. Both have read the same rows, and yet"
        " they count different ones: a record may be missing, or stand twice.",
    ),
    Code(
        "RECORD006",
        "Dead letters cannot leave with the rows of this query",
        "A query that keeps state has one output, after its aggregation, and a bad record is found before it. Other"
        " queries can do it where Spark's own Kafka sink writes them, without `batch_sql`.",
    ),
    Code("RECORD003", "A dead letter cannot be kept", "The place where dead letters go has refused it."),
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
        "SCHEMA001",
        "A schema cannot be inferred",
        "A living schema begins with the files that are there, or with `schema_hints`. There are neither, no column was"
        " found, or the hints are not columns with their types.",
    ),
    Code(
        "SCHEMA002",
        "New columns have come",
        "`on_new_columns: fail` asks to stop then. Nothing of the batch is written; the next run stops at it again.",
    ),
    Code(
        "SCHEMA003",
        "A batch was refused, and nothing new is in it",
        "The files of the batch have changed since, or are gone. Penstock ends the query: it would be refused again.",
    ),
    Code(
        "SCHEMA004",
        "State cannot take new columns",
        "The query's state holds whole rows, of `dropDuplicates()` without keys for one. Rows with new columns do not"
        " fit the state that the checkpoint has.",
    ),
    Code(
        "SCHEMA005",
        "A column has two types",
        "A Parquet file holds a column in a type that cannot be read as that of the schema. Spark reads a column of all"
        " files in one type, so no row of that file can be read.",
    ),
    Code(
        "SCHEMA006",
        "A schema cannot be kept",
        "The versions of a living schema are small files in `schema_location`, which must be there at every run.",
    ),
    Code(
        "READY001",
        "A ready-made processor names a column that is not there",
        "Its options name columns of the rows that it gets. Spark knows them once it has read the source's schema.",
    ),
    Code(
        "READY002",
        "A ready-made processor cannot use a column of this type",
        "Times are TIMESTAMPs, sums need numbers, and what is ranked or kept needs a type that Spark can sort or keep"
        " in state.",
    ),
    Code(
        "READY003",
        "A column would stand twice",
        "A ready-made processor adds columns to the rows. Names differ in more than their case.",
    ),
    Code(
        "READY006",
        "A processor's time column carries no watermark",
        "A processor that goes by event time closes sessions, leaves rankings and finds absences when the watermark has"
        " passed. The watermark must be on the very column that its option `time` names.",
    ),
    Code(
        "PROCESS001",
        "A `process` step names no stateful processor",
        "After `with:` stands `module:Class`: a class in a module of the project, made from PySpark's"
        " `StatefulProcessor`, with its methods `init` and `handleInputRows`.",
    ),
    Code(
        "PROCESS002",
        "Options do not fit a processor",
        "`options` are the keyword arguments of the processor's constructor: those that it takes, and all that it"
        " needs.",
    ),
    Code(
        "PROCESS003",
        "Rows have no such column to be grouped by",
        "The columns of `key` must be in the rows that the step gets, and in those of its initial state.",
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
