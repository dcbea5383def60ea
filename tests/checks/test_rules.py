"""The contract of every rule: it finds its wrong case, it is silent on its right one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from penstock.checks import every_rule
from penstock.checks.every_rule import judge, rules
from penstock.checks.rule import Disk, Rule, Subject
from penstock.facts.stored import BatchCode, CheckpointFacts, FolderFacts, ReadFile
from penstock.pipeline import from_yaml, project
from penstock.pipeline.yaml_text import parse
from penstock.problems import Problem, errors_in
from tests.modules import make_modules

RULES = {rule.code: rule for rule in rules()}
SPEC_RULES = [rule for rule in rules() if rule.needs in ("spec", "plan")]
DISK_RULES = [rule for rule in rules() if rule.needs == "disk"]

each_rule = pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule.code)
each_spec_rule = pytest.mark.parametrize("rule", SPEC_RULES, ids=lambda rule: rule.code)


def subject_of(text: str, root: Path, disk: Disk | None = None) -> Subject:
    make_modules(text, root)
    pipeline = from_yaml.from_document(parse(text, "pipeline.yaml"), root)
    return Subject(project.bare(root), pipeline, disk=disk or Disk())


def test_every_code_stands_for_one_rule() -> None:
    assert len(RULES) == len(rules())


def test_a_rule_that_raises_is_a_problem_and_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(subject: Subject) -> Iterator[Problem]:
        raise TypeError("unhashable type: 'list'")
        yield

    one = RULES["GRAPH001"]
    raising = (replace(RULES["GRAPH002"], check=broken), replace(RULES["MODE001"], check=broken))
    monkeypatch.setattr(every_rule, "rules", lambda: (raising[0], one, *raising[1:]))
    subject = subject_of(RULES["MODE001"].wrong, tmp_path)
    problems = judge(subject)
    assert [(problem.code, problem.severity) for problem in problems] == [("CHECK002", "warning")] * 2
    assert "the rule MODE001 could not judge" in problems[1].message
    assert problems[1].where is not None
    assert [problem.code for problem in every_rule.judge_plans(subject, None)] == (
        ["CHECK002"] if RULES["MODE001"].kind != "engine" else []
    )


@each_rule
def test_every_rule_says_what_it_finds_and_why_and_shows_it(rule: Rule) -> None:
    assert rule.title
    assert rule.why
    assert not rule.title.endswith(".")
    assert "\n" not in rule.title
    assert rule.wrong
    assert rule.severity in ("error", "warning")
    if rule.needs != "disk":
        assert rule.right


@each_spec_rule
def test_the_wrong_case_breaks_this_rule_and_no_other(rule: Rule, tmp_path: Path) -> None:
    problems = judge(subject_of(rule.wrong, tmp_path))
    assert "CHECK002" not in {problem.code for problem in problems}
    if rule.severity == "error":  # a warning beside it may be right
        assert {problem.code for problem in errors_in(problems)} == {rule.code}
    else:
        assert {problem.code for problem in problems} == {rule.code}
    for problem in (one for one in problems if one.code == rule.code):
        assert problem.severity == rule.severity
        assert problem.message
        assert problem.fix
        assert problem.where is not None
        assert problem.where.file == "pipeline.yaml"


@each_spec_rule
def test_the_right_case_is_right(rule: Rule, tmp_path: Path) -> None:
    problems = judge(subject_of(rule.right, tmp_path))
    assert not errors_in(problems)
    assert rule.code not in {problem.code for problem in problems}


FILES = """\
pipeline: copy
sources: {lines: {type: files, path: in, format: text}}
sinks: {out: {of: lines, type: files, path: out, format: text}}
queries: {lines: {spark: {spark.sql.shuffle.partitions: 8}}}
"""
BORN = CheckpointFacts("lines", 1, "/s/checkpoints/copy/lines/0001", "id-1", "id-1")


def folder(path: str, **facts: object) -> Disk:
    return Disk(folders={path: FolderFacts(path, **{"exists": True, **facts})})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Case:
    """What is on disk, below a project's root `ROOT`, when a rule is broken and when it is not."""

    wrong: Disk
    right: tuple[Disk, ...]
    place: str
    said: str
    text: str = field(default=FILES)


ROOT = Path("/srv/copy")
IN, OUT = str(ROOT / "in"), str(ROOT / "out")


def partitioned(before: tuple[str, ...] | None, now: tuple[str, ...], files: tuple[str, ...] = ()) -> Disk:
    columns = {} if before is None else {"lines": before}
    return replace(
        folder(IN, partition_columns=now, files=files), checkpoints={"lines": replace(BORN, partition_columns=columns)}
    )


def having_read(*files: ReadFile) -> Disk:
    return Disk(checkpoints={"lines": replace(BORN, read_files=files)})


CASES = {
    "FILES004": Case(
        wrong=partitioned(("day",), ("country",)),
        right=(
            partitioned(("day",), ("day",)),
            partitioned((), ()),
            partitioned(None, ("country",)),
            partitioned(("day",), ()),
            folder(IN, partition_columns=("country",)),
        ),
        place="pipeline.yaml:2:38",
        said="`country`",
    ),
    "FILES005": Case(
        wrong=folder(IN, files=("a.csv", "b.csv.part")),
        right=(folder(IN, files=("a.csv", "partial.csv", "b.tmpl")), folder(IN), Disk()),
        place="pipeline.yaml:2:38",
        said="`b.csv.part`",
    ),
    "FILES006": Case(
        wrong=having_read(ReadFile("/in/a", 100, 3, 200), ReadFile("/in/b", 100, 4, 300)),
        right=(having_read(ReadFile("/in/a", 100, 3, 100), ReadFile("/in/b", 100, 3, None)), having_read(), Disk()),
        place="pipeline.yaml:4:11",
        said="(and 1 more)",
    ),
    "FILES007": Case(
        wrong=folder(IN, exists=False),
        right=(folder(IN), folder(OUT, exists=False), Disk()),
        place="pipeline.yaml:2:38",
        said="`in`",
    ),
    "FILES008": Case(
        wrong=folder(OUT, is_file=True),
        right=(folder(OUT), folder(OUT, exists=False), folder(IN, is_file=True), Disk()),
        place="pipeline.yaml:3:45",
        said="is a file",
    ),
    "FILES011": Case(
        wrong=folder(OUT, last_sink_batch=0),
        right=(
            folder(OUT),
            replace(folder(OUT, last_sink_batch=3), checkpoints={"lines": replace(BORN, last_offset=3)}),
            Disk(),
        ),
        place="pipeline.yaml:3:45",
        said="begins anew",
    ),
    "CHECKPOINT006": Case(
        wrong=Disk(checkpoints={"lines": replace(BORN, spark_id=None)}),
        right=(Disk(checkpoints={"lines": BORN}), Disk()),
        place="pipeline.yaml:4:11",
        said="has no identity",
    ),
    "CHECKPOINT001": Case(
        wrong=Disk(orphans=("rows",)),
        right=(Disk(checkpoints={"lines": BORN}), Disk()),
        place="pipeline.yaml:1:1",
        said="`rows` has no query",
    ),
    "CHECKPOINT002": Case(
        wrong=Disk(storage=FolderFacts("/s", exists=True, writable=False)),
        right=(Disk(storage=FolderFacts("/s", exists=False)), Disk()),
        place="penstock.yaml:1:1",
        said="`/s`",
    ),
    "SINK009": Case(
        wrong=Disk(batch_code={"out": BatchCode(writes=1, uses_batch=False)}),
        right=(
            Disk(batch_code={"out": BatchCode(writes=2, uses_batch=True)}),
            Disk(batch_code={"out": BatchCode(writes=0, uses_batch=False)}),
            Disk(),
        ),
        place="pipeline.yaml:3:9",
        said="is written again",
    ),
    "CHECKPOINT005": Case(
        wrong=Disk(checkpoints={"lines": replace(BORN, settings={"spark.sql.shuffle.partitions": "2"})}),
        right=(
            Disk(checkpoints={"lines": replace(BORN, settings={"spark.sql.shuffle.partitions": "8"})}),
            Disk(checkpoints={"lines": replace(BORN, settings={"spark.sql.other": "2"})}),
            Disk(),
        ),
        place="pipeline.yaml:4:57",
        said="created with 2",
    ),
}


def judged(case: Case, disk: Disk) -> tuple[Problem, ...]:
    return judge(subject_of(case.text, ROOT, disk), spec=False, disk=True)


def test_every_rule_on_the_disk_has_its_cases() -> None:
    assert set(CASES) == {rule.code for rule in DISK_RULES}


@pytest.mark.parametrize("code", CASES)
def test_the_wrong_disk_breaks_this_rule_and_no_other(code: str) -> None:
    case = CASES[code]
    (problem,) = judged(case, case.wrong)
    assert (problem.code, problem.severity) == (code, RULES[code].severity)
    assert case.said in problem.message
    assert str(problem.where) == case.place


@pytest.mark.parametrize("code", CASES)
def test_the_right_disks_are_right(code: str) -> None:
    case = CASES[code]
    for disk in case.right:
        assert code not in {problem.code for problem in judged(case, disk)}


def test_a_renamed_query_is_offered_its_former_checkpoint() -> None:
    (problem,) = judged(CASES["CHECKPOINT001"], Disk(orphans=("rows",)))
    assert "queries: {lines: {was: rows}}" in problem.fix


def test_a_sink_that_cannot_be_written_is_told_too() -> None:
    (problem,) = judged(CASES["FILES008"], folder(OUT, writable=False))
    assert "cannot be written" in problem.message


def test_an_older_checkpoint_than_its_output_is_told_too() -> None:
    disk = replace(folder(OUT, last_sink_batch=3), checkpoints={"lines": replace(BORN, last_offset=2)})
    (problem,) = judged(CASES["FILES011"], disk)
    assert "is at batch 2" in problem.message


def test_storage_that_is_a_file_is_told_too() -> None:
    (problem,) = judged(CASES["CHECKPOINT002"], Disk(storage=FolderFacts("/s", exists=True, is_file=True)))
    assert "it is a file" in problem.message


def test_a_glob_filter_chooses_the_whole_files() -> None:
    text = FILES.replace("path: in,", "path: in, path_glob_filter: '*.csv',")
    case = replace(CASES["FILES005"], text=text)
    assert judged(case, case.wrong) == ()


def test_a_broken_graph_is_told_alone(tmp_path: Path) -> None:
    text = "pipeline: p\nlatency: realtime\nsources: {a: {type: rate}}\nsinks: {o: {of: b, type: console}}\n"
    assert [problem.code for problem in judge(subject_of(text, tmp_path))] == ["GRAPH006"]


def test_the_quick_parser_is_left_out_where_spark_parses(tmp_path: Path) -> None:
    subject = subject_of(RULES["SQL001"].wrong, tmp_path)
    assert [problem.code for problem in judge(subject)] == ["SQL001"]
    assert judge(subject, spark=True) == ()


def with_other(text: str, other: str, root: Path) -> Subject:
    return replace(subject_of(text, root), others=(subject_of(other, root).pipeline,))


def test_two_pipelines_may_not_write_into_one_folder(tmp_path: Path) -> None:
    other = FILES.replace("pipeline: copy", "pipeline: other")
    assert {problem.code for problem in judge(with_other(FILES, other, tmp_path))} == {"SINK003"}
    assert judge(with_other(FILES, other.replace("path: out", "path: elsewhere"), tmp_path)) == ()


@pytest.mark.covers("source.files.clean-overlap")
def test_another_pipeline_may_not_lose_its_files_to_a_cleaner(tmp_path: Path) -> None:
    cleaning = FILES.replace("path: in", "clean_source: delete, path: in")
    other = FILES.replace("pipeline: copy", "pipeline: other").replace("path: out", "path: elsewhere")
    assert {problem.code for problem in judge(with_other(cleaning, other, tmp_path))} == {"FILES009"}
    assert judge(with_other(cleaning, other.replace("path: in", "path: elsewhere/in"), tmp_path)) == ()


def test_another_pipeline_may_read_what_a_sink_writes(tmp_path: Path) -> None:
    chained = FILES.replace("pipeline: copy", "pipeline: next").replace("path: out", "path: end")
    assert judge(with_other(FILES, chained.replace("path: in", "path: out"), tmp_path)) == ()


@pytest.mark.parametrize(
    "text",
    [
        FILES.replace("path: in", "path: '${IN}'").replace("path: out", "path: '${IN}'"),
        FILES.replace("path: in", "path: '${IN:-in}', latest_first: '${L}', max_file_age: '${A}'"),
        FILES.replace("path: in", "path: in, clean_source: archive, source_archive_dir: '${ARCHIVE}'"),
    ],
)
def test_references_are_not_judged_before_they_are_resolved(text: str, tmp_path: Path) -> None:
    assert judge(subject_of(text, tmp_path)) == ()


def test_a_setting_of_the_project_that_a_checkpoint_overrules_is_reported_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("name: test\nspark: {spark.sql.streaming.multipleWatermarkPolicy: max}\n")
    subject = subject_of(CASES["CHECKPOINT006"].text, ROOT, Disk())
    wide = project.load(tmp_path, None)
    born = replace(BORN, settings={"spark.sql.streaming.multipleWatermarkPolicy": "min"})
    told = judge(replace(subject, project=wide, disk=Disk(checkpoints={"lines": born})), spec=False, disk=True)
    assert [(one.code, one.where and one.where.line) for one in told] == [("CHECKPOINT005", 2)]
