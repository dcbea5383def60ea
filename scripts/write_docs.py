"""Write the generated pages of the docs anew: `python scripts/write_docs.py`. With `--check`, only say what is old.

`docs/reference` comes from the parts, the project's grammar and the commands; `docs/problems` from the codes. Nothing
in these two folders is written by hand, so a page that no part or code stands behind is removed. `docs/coverage.md`
comes from the marks of the tests.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import typer
import yaml
from docs_keys import Row, keys_of

from penstock import catalog
from penstock.actions.explain import Explanation, all_explanations
from penstock.cli import screen
from penstock.cli.main import COMMANDS, app
from penstock.connections.connection import ConnectionSpec
from penstock.dead_letters.bad_records import Expectation
from penstock.engine.latency import PARTITIONS, profile
from penstock.formats.any import READ_FORMATS, WRITE_FORMATS
from penstock.formats.format import ReadFormat, WriteFormat
from penstock.json_schema import pipeline_schema
from penstock.lakes.catalogs import CatalogSpec
from penstock.pipeline.model import Origin, Query, QuerySettings
from penstock.pipeline.pipeline_spec import PipelineSpec
from penstock.pipeline.project import Overlay, ProjectSpec
from penstock.problems import Where
from penstock.processors import READY_MADE
from penstock.processors.ready_made import ReadyMade
from penstock.query.state_store import State
from penstock.query.triggers import Latency, Trigger
from penstock.query.watermark import Watermark
from penstock.sinks.sink import SinkSpec
from penstock.sources.source import SourceSpec, StaticOrStream
from penstock.spec import Part, Spec
from penstock.transforms.functions import Function
from penstock.transforms.step import StepSpec

DOCS = Path(__file__).parent.parent / "docs"
FOLDERS = ("reference", "problems")
NOTE = "<!-- Written by scripts/write_docs.py: change the code it comes from, then run `make docs`. -->"

REAL_TIME = (
    "`realtime` is Spark's Real-Time Mode, in mode `update`. Where a query cannot have it, a Problem names what stands"
    " in the way; it never falls back to something slower. `penstock check --show-plan` shows every setting and why."
)

Pages = dict[str, str]
"""By path below `docs`, the text of a page."""


def main() -> int:
    pages = {path: text.rstrip() + "\n" for path, text in (reference_pages() | problem_pages() | proof_pages()).items()}
    found = {path.relative_to(DOCS).as_posix() for folder in FOLDERS for path in (DOCS / folder).rglob("*.md")}
    stale = sorted(found - pages.keys())
    changed = sorted(path for path, text in pages.items() if _text_of(DOCS / path) != text)
    if "--check" in sys.argv[1:]:
        for path in (*changed, *stale):
            print(f"docs/{path} is not up to date: run `make docs`")
        return 1 if changed or stale else 0
    for path in changed:
        (DOCS / path).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / path).write_text(pages[path], encoding="utf-8")
    for path in stale:
        (DOCS / path).unlink()
    print(f"{len(pages)} pages: {len(changed)} written, {len(stale)} removed")
    return 0


def _text_of(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.is_file() else None


# --- the reference ---


def reference_pages() -> Pages:
    parts: dict[str, dict[str, str]] = {
        "sources": {name: source_page(name, part) for name, part in catalog.sources().items()},
        "steps": {name: step_page(name, part) for name, part in catalog.steps().items()},
        "processors": {word: processor_page(word, part) for word, part in READY_MADE.items()},
        "sinks": {name: sink_page(name, part) for name, part in catalog.sinks().items()},
        "formats": format_pages(),
        "connections": {name: jars_page("connection", name, part) for name, part in catalog.connections().items()},
        "catalogs": {name: jars_page("catalog", name, part) for name, part in catalog.spark_catalogs().items()},
    }
    pages = {f"reference/{kind}/{name}.md": text for kind, named in parts.items() for name, text in named.items()}
    return pages | {
        "reference/README.md": reference_index(parts),
        "reference/project.md": project_page(),
        "reference/pipeline.md": pipeline_page(),
        "reference/commands.md": commands_page(),
    }


def reference_index(parts: Mapping[str, Mapping[str, str]]) -> str:
    lists = [
        section(
            kind.capitalize(), "\n".join(f"- [{name}]({kind}/{name}.md): {_summary(named[name])}" for name in named)
        )
        for kind, named in parts.items()
    ]
    top = (
        "- [The project](project.md): the keys of `penstock.yaml`\n"
        "- [The pipeline](pipeline.md): the keys of a pipeline's file, query settings, watermarks, triggers\n"
        "- [The commands](commands.md): options and exit codes\n"
        "- [The problems](../problems/README.md): every code, with a wrong and a right example"
    )
    return page("Reference", "Every key, with its type and default.", top, *lists)


def source_page(name: str, part: type[SourceSpec]) -> str:
    facts = [
        f"- Replayable after a crash: **{'yes' if part.capabilities.replayable else 'no'}**",
        f"- Can be read as a static table: **{'yes' if issubclass(part, StaticOrStream) else 'no'}**",
    ]
    return part_page(f"Source `{name}`", part, {"sources": {"my_source": _example(part)}}, keys_of(part), facts)


def sink_page(name: str, part: type[SinkSpec]) -> str:
    promise = part.capabilities.guarantee
    facts = [
        f"- Promise: **{promise.promise}**, because {promise.reason}",
        f"- Output modes: {', '.join(f'`{mode}`' for mode in sorted(part.capabilities.output_modes))}",
        f"- Keeps its rows when the process ends: **{'no' if part.capabilities.ephemeral else 'yes'}**",
    ]
    of = _schemas_of("sinks")[0]["properties"]["of"]["description"]
    rows = [("of", "name", "required", of), *keys_of(part)]
    return part_page(f"Sink `{name}`", part, {"sinks": {"my_sink": _example(part)}}, rows, facts)


def step_page(name: str, part: type[StepSpec]) -> str:
    rows = keys_of(part)
    if name == "sql":
        schema = next(schema for schema in _schemas_of("steps") if "sql_file" in schema["properties"])
        text = f"In place of `sql`. {schema['properties']['sql_file']['description']}"
        rows = [*rows, ("sql_file", "path", "–", text)]
    page_of = part_page(f"Step `{name}`", part, {"steps": {"my_step": _example(part)}}, rows)
    inner = part.model_fields[part.key].annotation
    if isinstance(inner, type) and issubclass(inner, Spec):  # a step whose own key holds others
        return f"{page_of}\n\n{section(f'Keys of `{name}`', table(keys_of(inner)))}"
    return page_of


def processor_page(word: str, part: type[ReadyMade]) -> str:
    example = {"steps": {"my_step": _example(part)}}
    facts = ["See [how to use ready-made processors](../../how-to/ready-made-processors.md)."]
    return part_page(f"Processor `{word}`", part, example, keys_of(part), facts)


def format_pages() -> dict[str, str]:
    writes = {catalog.type_of(part): part for part in WRITE_FORMATS}
    return {name: format_page(name, part, writes[name]) for part in READ_FORMATS for name in [catalog.type_of(part)]}


def format_page(name: str, read: type[ReadFormat], write: type[WriteFormat]) -> str:
    short = f"`format: {name}` is short for `format: {{type: {name}}}`."
    sections = [
        section(title, docstring(part), yaml_block({"format": _example(part)}), table(keys_of(part)))
        for title, part in (("Reading", read), ("Writing", write))
    ]
    return page(f"Format `{name}`", short, *sections)


def jars_page(noun: str, name: str, part: type[ConnectionSpec] | type[CatalogSpec]) -> str:
    jars = ", ".join(f"`{connector}`" for connector in part.connectors) or "none"
    example = {f"{noun}s": {f"my_{noun}": _example(part)}}
    return part_page(f"{noun.capitalize()} `{name}`", part, example, keys_of(part), [f"- Connector jars: {jars}"])


def project_page() -> str:
    return page(
        "The project: `penstock.yaml`",
        "A project is a folder with this file. Pipelines are the files in its folder `pipelines`.",
        section("Keys", table(keys_of(ProjectSpec))),
        section(
            "An environment",
            "What stands under a name in `environments`, chosen by `--env`. Mappings are merged, all else is replaced.",
            table(keys_of(Overlay)),
        ),
    )


def pipeline_page() -> str:
    return page(
        "The pipeline",
        "One file in `pipelines`. Every unknown key is refused.",
        section("Keys", table(keys_of(PipelineSpec))),
        section(
            "Query settings",
            "What stands under a name in `queries`. A query is named after the step or source that feeds its sink.",
            table(keys_of(QuerySettings)),
        ),
        section("Latency", "The trigger of a query that names none:", latency_table(), REAL_TIME),
        section("Trigger", docstring(Trigger)),
        section("State", docstring(State), table(keys_of(State))),
        section("Watermark", docstring(Watermark), table(keys_of(Watermark))),
        section("Expectation", docstring(Expectation), table(keys_of(Expectation))),
        section("Function", docstring(Function), table(keys_of(Function))),
    )


def latency_table() -> str:
    queries = [Query("any", (), QuerySettings(), word, origin=Origin(Where(""))) for word in get_args(Latency)]
    found = [(query.latency, profile(query, cores=8)) for query in queries]
    lines = [f"| `{word}` | `{one.trigger}` | {one.trigger_why} | {one.settings[PARTITIONS]} |" for word, one in found]
    return "\n".join(["| word | trigger | why | partitions on 8 cores |", "|---|---|---|---|", *lines])


def commands_page() -> str:
    group: Any = typer.main.get_command(app)
    context = group.make_context("penstock", [], resilient_parsing=True)
    sections = [one for name in COMMANDS for one in command_sections(name, group.get_command(context, name), context)]
    codes = {
        screen.WELL: "all is well",
        screen.PROBLEMS: "problems were found, and no query was started",
        screen.USAGE: "the command was used wrongly: an unknown option, a missing argument",
        screen.FAILED: "a run was started, and a query failed",
    }
    exits = ["| code | meaning |", "|---|---|", *(f"| {code} | {meaning} |" for code, meaning in codes.items())]
    return page("The commands", group.help, *sections, section("Exit codes", "\n".join(exits)))


def command_sections(name: str, command: Any, parent: Any) -> list[str]:
    """One for a command, and one for each command of a group."""
    context = command.make_context(name, [], parent=parent, resilient_parsing=True)
    if not hasattr(command, "commands"):
        return [command_section(name, command, context)]
    return [one for word, part in command.commands.items() for one in command_sections(f"{name} {word}", part, context)]


def command_section(name: str, command: Any, context: Any) -> str:
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f"| `{_written(one, context)}` | {_default_of_option(one)} | {_cell(one.help)} |" for one in command.params
    ]
    options = "\n".join(["| option | default | what it does |", "|---|---|---|", *lines])
    return section(f"penstock {name}", command.help, block(f"penstock {name} {usage}", "text"), options)


def _written(parameter: Any, context: Any) -> str:
    """As `--help` shows it: an argument by its name, an option with what it takes."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name)
    flags = ", ".join(parameter.opts)
    return flags if parameter.is_flag else f"{flags} {parameter.metavar or parameter.display_type(context)}"


def _default_of_option(option: Any) -> str:
    if option.required:
        return "required"
    if isinstance(option.show_default, str):
        return option.show_default
    return "–" if option.default in (None, False) else f"`{option.default}`"


# --- the problems ---


def problem_pages() -> Pages:
    explanations = all_explanations()
    pages = {f"problems/{explanation.code}.md": problem_page(explanation) for explanation in explanations}
    return pages | {"problems/README.md": problem_index(explanations)}


def problem_index(explanations: Sequence[Explanation]) -> str:
    rows = [f"| [{one.code}]({one.code}.md) | {one.severity} | {_cell(one.title)} |" for one in explanations]
    about = (
        "Every error and warning has a code. `penstock explain CODE` shows its page in the terminal.\n"
        "An error stops `check` and `run`; a warning does not."
    )
    return page("Problems", about, "\n".join(["| code | severity | meaning |", "|---|---|---|", *rows]))


def problem_page(one: Explanation) -> str:
    examples = [
        section(title, _example_text(text, info))
        for title, text, info in (("Wrong", one.wrong, "yaml wrong"), ("Right", one.right, "yaml"))
        if text
    ]
    return page(f"{one.code}: {one.title}", f"Severity: **{one.severity}**", one.why, *examples)


def _example_text(text: str, info: str) -> str:
    """YAML in a block; a rule about the disk has a sentence in its place."""
    return block(text, info) if re.match(r"#|\w+:", text) else f"{text[0].upper()}{text[1:]}."


# --- the proofs ---


def proof_pages() -> Pages:
    sys.path.append(str(DOCS.parent))
    from tests.proofs import coverage_page

    return {"coverage.md": coverage_page(NOTE)}


def _schemas_of(section_name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pipeline_schema()["properties"][section_name]["additionalProperties"]["oneOf"]
    return found


# --- Markdown ---


def part_page(title: str, part: type[Part], example: Any, rows: Sequence[Row], facts: Sequence[str] = ()) -> str:
    return page(
        title,
        docstring(part),
        "\n".join(facts),
        section("Example", yaml_block(example)),
        section("Keys", table(rows)),
    )


def page(title: str, *blocks: str) -> str:
    return "\n\n".join([NOTE, f"# {title}", *filter(None, blocks)])


def section(title: str, *blocks: str) -> str:
    return "\n\n".join([f"## {title}", *filter(None, blocks)])


def table(rows: Sequence[Row]) -> str:
    lines = [f"| `{key}` | {_cell(kind)} | {_cell(default)} | {_cell(about)} |" for key, kind, default, about in rows]
    return "\n".join(["| key | type | default | what it does |", "|---|---|---|---|", *lines])


def block(text: str, info: str) -> str:
    return f"```{info}\n{text.rstrip()}\n```"


def yaml_block(data: Any) -> str:
    return block(yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=1_000), "yaml")


def docstring(part: type[Any]) -> str:
    return inspect.cleandoc(part.__doc__ or "")


def _example(part: type[Part]) -> Any:
    return yaml.safe_load(part.example)


def _summary(text: str) -> str:
    """The first sentence of a page's own text: of its docstring, or of its first section's."""
    lines = [line for line in text.splitlines() if line and not line.startswith(("<", "#", "`format:"))]
    return re.split(r"[.;](?:\s|$)", lines[0])[0]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
