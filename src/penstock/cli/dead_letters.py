"""`penstock dead-letters`: records that were put aside, and the way back for them."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from penstock.cli.engine import starter
from penstock.cli.options import Env, Json, Pipelines, Project
from penstock.cli.screen import FAILED, PROBLEMS, err, out, print_json, show_problems
from penstock.notation.counts import counted
from penstock.notation.paths import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.dead_letters.letters import Letter, LetterFilter
    from penstock.dead_letters.listed import ListedLetters
    from penstock.dead_letters.replay.outcome import ReplayOutcome
    from penstock.dead_letters.replay.put_back import ReplayResult
    from penstock.dead_letters.shown import ShownLetter
    from penstock.problems import Problem

dead_letters = typer.Typer(
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich"
)
_STYLES = {"sent": "bold green", "would be sent": "green", "failed": "bold red", "cannot be sent": "red"}
_SHOWN_BYTES = 10_000
_SHOWN_LATE = 20
_ID = 12
_NEAR_DAYS = 180

Node = Annotated[
    str | None, typer.Option("--node", help="Those of this source, step or sink.", metavar="NAME", show_default=False)
]
Check = Annotated[
    list[str] | None,
    typer.Option(
        "--check", metavar="NAME", help="Those that failed this check; `decoded` means unreadable.", show_default=False
    ),
]
Id = Annotated[
    list[str] | None,
    typer.Option(
        "--id",
        metavar="ID",
        help="This one, by the beginning of its id; may be given several times.",
        show_default=False,
    ),
]
Pipeline = Annotated[
    str | None,
    typer.Option("--pipeline", metavar="NAME", help="Those of this pipeline, by name or file.", show_default=False),
]
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="The most to show.")]


@dead_letters.callback()
def group() -> None:
    """Records that were put aside: why, and the way back for them. Each command takes `--json`."""


@dead_letters.command("list")
def list_(
    pipelines: Pipelines = None,
    node: Node = None,
    limit: Limit = 50,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Counts dead letters by node and check, with an example of the reason."""
    from penstock.actions.dead_letters import list_letters

    result = list_letters(project, tuple(pipelines or ()), env, node, starter(quiet=as_json, brief=True))
    if as_json:
        print_json(result.to_json())
    else:
        _show_list(result, limit)
    _end(result.problems, project, told=as_json)


@dead_letters.command()
def show(
    id_: Annotated[
        str | None, typer.Argument(help="A letter, by the beginning of its id.", metavar="[ID]", show_default=False)
    ] = None,
    node: Node = None,
    check: Check = None,
    limit: Limit = 20,
    pipeline: Pipeline = None,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Shows letters in full, the newest first: the reason, the record, and where it came from."""
    from penstock.actions.dead_letters import show_letters

    choice = _chosen(node, tuple(check or ()), (id_,) if id_ else ())
    result = show_letters(project, _one(pipeline), env, choice, limit, starter(quiet=as_json, brief=True))
    if as_json:
        print_json(result.to_json())
    else:
        for one in result.letters:
            _show_letter(one)
        if result.total > len(result.letters):
            out.print(f"[dim]{result.total - len(result.letters):,} more: `--limit` shows them[/]")
    _end(result.problems, project, told=as_json)


@dead_letters.command()
def export(
    node: Node = None,
    check: Check = None,
    id_: Id = None,
    again: Annotated[bool, typer.Option("--again", help="Also those that were replayed before.")] = False,
    pipeline: Pipeline = None,
    env: Env = None,
    project: Project = Path(),
    as_json: Annotated[bool, typer.Option("--json", help="One JSON array in place of a JSON object a line.")] = False,
) -> None:
    """Writes letters as JSON, one a line, to be mended: edit `raw` there, then `replay --from` the file."""
    from penstock.actions.dead_letters import show_letters

    choice = _chosen(node, tuple(check or ()), tuple(id_ or ()))
    result = show_letters(project, _one(pipeline), env, choice, None, starter(quiet=True), again=again)
    letters = [one.to_json() for one in reversed(result.letters)]
    if as_json:
        print_json(letters)
    else:
        for letter in letters:
            sys.stdout.write(json.dumps(letter, ensure_ascii=False) + "\n")
    _end(result.problems, project)


@dead_letters.command()
def replay(
    node: Node = None,
    check: Check = None,
    id_: Id = None,
    mended: Annotated[
        Path | None,
        typer.Option(
            "--from", help="A file from `export`: what was changed in it is sent.", metavar="FILE", show_default=False
        ),
    ] = None,
    unchanged: Annotated[bool, typer.Option("--all", help="With --from: send what is unchanged too.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Send also what was sent before.")] = False,
    skip_late: Annotated[bool, typer.Option("--skip-late", help="Do not send what is behind a watermark.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be sent.")] = False,
    pipeline: Pipeline = None,
    env: Env = None,
    project: Project = Path(),
    as_json: Json = False,
) -> None:
    """Puts records back into the topic or folder that they came from, each once: as they were, or mended."""
    from penstock.actions.dead_letters import replay_letters
    from penstock.dead_letters.replay.planning import ReplayOptions

    choice = _chosen(node, tuple(check or ()), tuple(id_ or ()))
    options = ReplayOptions(mended, unchanged, again, skip_late, dry_run)
    result = replay_letters(project, _one(pipeline), env, choice, options, starter(quiet=as_json))
    if as_json:
        print_json(result.to_json())
    else:
        _show_replay(result)
        from penstock.pipeline.load import find_root

        show_problems(result.problems, find_root(project) or project, err)
    raise typer.Exit(FAILED if result.has_failed else 0 if result.ok else PROBLEMS)


def _end(problems: Sequence[Problem], project: Path, *, told: bool = False) -> None:
    """Shows what is wrong with pipelines that were left out, and ends with the exit code that says so."""
    if not problems:
        return
    if not told:
        from penstock.pipeline.load import find_root

        show_problems(problems, find_root(project) or project, err)
    raise typer.Exit(PROBLEMS)


def _one(pipeline: str | None) -> tuple[str, ...]:
    return (pipeline,) if pipeline else ()


def _show_list(result: ListedLetters, limit: int) -> None:
    if not result.groups:
        out.print("[bold green]✓[/] no dead letters")
        return
    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 1, 0))
    several = len({group.pipeline for group in result.groups}) > 1
    for name in (*(["pipeline"] if several else []), "node"):
        table.add_column(name, no_wrap=True)
    table.add_column("check, and a reason", overflow="fold", ratio=1)
    for name in ("letters", "replayed"):
        table.add_column(name, justify="right", no_wrap=True)
    for name in ("first", "last"):
        table.add_column(name, no_wrap=True)
    for group in result.groups[:limit]:
        table.add_row(
            *([Text(group.pipeline)] if several else []),
            Text(group.node, "bold"),
            Text.assemble(group.check, "\n", (group.reason or "", "dim")),
            Text(f"{group.letters:,}", "bold red" if group.letters > group.replayed else "dim"),
            Text(f"{group.replayed:,}" if group.replayed else "–", "green" if group.replayed else "dim"),
            Text(_short_moment(group.first), "dim"),
            Text(_short_moment(group.last), "dim"),
        )
    out.print(table)
    more = len(result.groups) - limit
    left = f", {more:,} more groups: `--limit` shows them" if more > 0 else ""
    out.print(f"[bold]{counted(result.letters, 'dead letter')}[/][dim]{left}[/]")


def _chosen(node: str | None, checks: tuple[str, ...], ids: tuple[str, ...]) -> LetterFilter:
    from penstock.dead_letters.letters import LetterFilter

    return LetterFilter(node, checks, ids)


def _show_letter(one: ShownLetter) -> None:
    letter = one.letter
    out.print(Text.assemble((letter.id[:_ID], "bold yellow"), "  ", (letter.node, "bold"), f" · {letter.check}"))
    rows: list[tuple[str, Text]] = [("reason", Text(letter.reason or "–", "red"))]
    rows.append(("from", Text(_place(one), "cyan")))
    if letter.key is not None:
        rows.append(("key", Text(_readable(letter.key))))
    rows += [("header", Text(f"{key}: {_readable(value)}")) for key, value in letter.headers]
    rows.append(("put aside", Text(_moment(letter.at), "dim")))
    if one.replayed_at:
        rows.append(("replayed", Text(one.replayed_at, "green")))
    rows.append(("record", Text(_readable(letter.raw))))
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in rows:
        grid.add_row(f"  {name}", value)
    out.print(grid)
    out.print()


def _place(one: ShownLetter) -> str:
    letter: Letter = one.letter
    if letter.topic is not None:
        at = f", {_moment(letter.timestamp)}" if letter.timestamp else ""
        return f"topic {letter.topic}, partition {letter.partition}, offset {letter.offset}{at}"
    if letter.file is None:
        return f"{letter.pipeline}.{letter.node}; nothing tells which record"
    lines = f":{one.lines[0]}" if len(one.lines) == 1 else ""
    several = f", lines {', '.join(map(str, one.lines))}" if len(one.lines) > 1 else ""
    return shown(_plain(letter.file)) + lines + several


def _plain(file: str) -> str:
    from urllib.parse import unquote

    from penstock.notation.paths import is_local, to_local

    return str(to_local(unquote(file))) if is_local(file) else file


def _readable(value: bytes | None) -> str:
    """Text where it is UTF-8, else bytes in hex."""
    if value is None:
        return "NULL"
    cut = value[:_SHOWN_BYTES]
    more = f" … {len(value) - len(cut):,} more bytes" if len(value) > len(cut) else ""
    try:
        text = value.decode("utf-8")[:_SHOWN_BYTES] if more else value.decode("utf-8")
        if text.isprintable() or all(character.isprintable() or character in "\r\n\t" for character in text):
            return text + more
    except UnicodeDecodeError:
        pass
    return cut.hex(" ") + more


def _moment(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else "–"


def _short_moment(moment: datetime | None) -> str:
    """Without what is plain: the year of a moment that is near."""
    if moment is None:
        return "–"
    return f"{moment:%m-%d %H:%M}" if abs((datetime.now(UTC) - moment).days) < _NEAR_DAYS else f"{moment:%Y-%m-%d}"


def _show_replay(result: ReplayResult) -> None:
    lines: dict[tuple[str, str, str], int] = {}
    for outcome in result.outcomes:
        key = (outcome.status, outcome.letter.node, _short(outcome))
        lines[key] = lines.get(key, 0) + 1
    for (status, node, to), count in lines.items():
        text = Text.assemble(
            (f"{count:>7,} ", "bold"), (f"{status:<14} ", _STYLES.get(status, "yellow")), (node, "bold")
        )
        out.print(text + Text(f" → {to}" if to else "", "cyan"), soft_wrap=True)
    if "sent before" in result.counts:
        out.print("[dim]        `--again` sends those once more[/]")
    if "unchanged" in result.counts:
        out.print("[dim]        `--all` sends those too[/]")
    late = [outcome for outcome in result.outcomes if outcome.late_for]
    for outcome in late[:_SHOWN_LATE]:
        for one in outcome.late_for:
            out.print(
                f"[yellow]late[/]    {outcome.letter.id[:_ID]} of {_moment(one.event_time)}: "
                f"query `{one.query}` is at {_moment(one.watermark)} and will refuse it",
                soft_wrap=True,
            )
    if len(late) > _SHOWN_LATE:
        out.print(f"[dim]        {len(late) - _SHOWN_LATE:,} more are late[/]")


def _short(outcome: ReplayOutcome) -> str:
    to = outcome.to or ""
    return shown(to) if to.startswith("/") else to
