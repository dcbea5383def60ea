"""What the codes of reading projects and pipelines mean, as far as no rule raises them."""

from __future__ import annotations

from penstock.codes import Code

_GOOD = """\
pipeline: words
sources: {lines: {type: files, path: in, format: text}}
sinks: {out: {of: lines, type: console}}"""

CODES: tuple[Code, ...] = (
    Code("PROJECT001", "There is no project here", "A project is a folder with `penstock.yaml`."),
    Code("PROJECT002", "An unknown environment", "`--env` takes a name from `environments:` in penstock.yaml."),
    Code("PROJECT003", "The project has no pipelines", "Pipelines are files in the folder `pipelines`."),
    Code("PROJECT008", "A folder cannot be looked at", "It is not there, or this user may not read it."),
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
    Code(
        "STEP001",
        "A Python step asks for rows while it is declared",
        "A step says how rows are made; it is called once, before there are any. `count()`, `show()` and `collect()`"
        " want rows now, and a stream has no end to wait for. Spark refuses them.",
    ),
)
