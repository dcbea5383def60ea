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
)
