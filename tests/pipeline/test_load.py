"""From a folder to its project and pipelines."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.pipeline.load import Loaded, find_root, load
from penstock.problems import UserError


def pipeline(name: str) -> str:
    return f"pipeline: {name}\nsources: {{a: {{type: rate}}}}\nsinks: {{o: {{of: a, type: console}}}}\n"


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Path]:
    """A project with two pipelines in YAML, one of them in a sub-folder, and one in Python."""
    files = {
        "penstock.yaml": "name: shop\nenvironments: {prod: {storage: /prod}}\n",
        "pipelines/orders.yaml": pipeline("orders"),
        "pipelines/deep/clicks.yml": pipeline("clicks"),
        "pipelines/ticks.py": "from naming import NAME\nfrom penstock import Pipeline, sinks, sources\n"
        "p = Pipeline(NAME)\np.source('a', sources.Rate())\np.sink('o', sinks.Console(), of='a')\n",
        "pipelines/notes.txt": "not a pipeline",
        "naming.py": "NAME = 'ticks'\n",
        "elsewhere.yaml": pipeline("elsewhere"),
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    path = list(sys.path)
    yield tmp_path
    sys.path[:] = path
    for name in ("naming", "pipelines.ticks"):
        sys.modules.pop(name, None)


def names(loaded: Loaded) -> list[str]:
    return [pipeline.name for pipeline in loaded.pipelines]


def test_loads_all_pipelines_of_the_project_from_any_folder_in_it(shop: Path) -> None:
    for start in (shop, shop / "pipelines" / "deep"):
        loaded = load(start)
        assert names(loaded) == ["clicks", "orders", "ticks"]
        assert (loaded.project.name, loaded.project.root) == ("shop", shop)
        assert (loaded.problems, loaded.others) == ((), ())
    assert loaded.pipelines[0].origin.where.file == "pipelines/deep/clicks.yml"


def test_loads_what_is_selected_by_name_in_that_order_and_keeps_the_others(shop: Path) -> None:
    loaded = load(shop, ["orders", "clicks", "orders"])
    assert names(loaded) == ["orders", "clicks"]
    assert [pipeline.name for pipeline in loaded.others] == ["ticks"]


def test_loads_what_is_selected_by_file(shop: Path) -> None:
    assert names(load(shop, ["elsewhere.yaml"])) == ["elsewhere"]
    assert names(load(shop / "pipelines", ["deep/clicks.yml", "ticks.py"])) == ["clicks", "ticks"]


def test_a_file_that_stands_alone_is_a_bare_project(tmp_path: Path) -> None:
    (tmp_path / "alone.yaml").write_text(pipeline("alone"))
    loaded = load(tmp_path, ["alone.yaml"])
    assert names(loaded) == ["alone"]
    assert (loaded.project.name, loaded.project.root) == (tmp_path.name, tmp_path)


def test_takes_the_environment(shop: Path) -> None:
    assert load(shop).project.storage == "storage"
    assert load(shop, environment="prod").project.storage == "/prod"


def test_finds_the_nearest_project(shop: Path, tmp_path: Path) -> None:
    inner = shop / "pipelines" / "deep"
    (inner / "penstock.yaml").write_text("name: inner\n")
    assert find_root(inner) == inner
    assert find_root(shop / "pipelines") == shop
    assert find_root(Path("/")) is None


@pytest.mark.parametrize(
    ("selection", "environment", "code", "said"),
    [
        (["ordres"], None, "PROJECT004", "did you mean `orders`?"),
        ([], "prd", "PROJECT002", "did you mean `prod`?"),
    ],
)
def test_tells_what_is_not_there(
    shop: Path, selection: list[str], environment: str | None, code: str, said: str
) -> None:
    with pytest.raises(UserError) as raised:
        load(shop, selection, environment)
    (problem,) = raised.value.problems
    assert problem.code == code
    assert said in problem.message


def test_tells_that_there_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        load(tmp_path)
    assert [problem.code for problem in raised.value.problems] == ["PROJECT001"]


def test_tells_that_there_are_no_pipelines(tmp_path: Path) -> None:
    (tmp_path / "penstock.yaml").write_text("name: empty\n")
    with pytest.raises(UserError) as raised:
        load(tmp_path)
    assert [problem.code for problem in raised.value.problems] == ["PROJECT003"]


def test_a_broken_file_leaves_the_others_whole(shop: Path) -> None:
    (shop / "pipelines" / "broken.yaml").write_text("pipeline: [\n")
    (shop / "pipelines" / "broken.py").write_text("1 / 0\n")
    loaded = load(shop)
    assert names(loaded) == ["clicks", "orders", "ticks"]
    assert [(problem.code, problem.where and problem.where.file) for problem in loaded.problems] == [
        ("SPEC014", "pipelines/broken.py"),
        ("SPEC005", "pipelines/broken.yaml"),
    ]


def test_a_pipeline_that_cannot_be_read_is_told_by_its_own_problems(shop: Path) -> None:
    (shop / "pipelines" / "broken.yaml").write_text("pipeline: returns\n")
    with pytest.raises(UserError) as raised:
        load(shop, ["returns"])
    assert {problem.code for problem in raised.value.problems} == {"SPEC008"}


def test_two_pipelines_of_one_name_are_told(shop: Path) -> None:
    (shop / "pipelines" / "second.yaml").write_text(pipeline("orders"))
    (problem,) = load(shop).problems
    assert (problem.code, str(problem.where)) == ("GRAPH003", "pipelines/second.yaml:1:11")
    assert "pipelines/orders.yaml" in problem.message


def test_modules_of_another_project_do_not_leak_in(shop: Path, tmp_path: Path) -> None:
    load(shop)
    other = tmp_path / "other"
    (other / "pipelines").mkdir(parents=True)
    (other / "penstock.yaml").write_text("name: other\n")
    (other / "naming.py").write_text("NAME = 'renamed'\n")
    (other / "pipelines" / "ticks.py").write_text((shop / "pipelines" / "ticks.py").read_text())
    assert names(load(other)) == ["renamed"]


def test_a_name_that_is_not_there_leaves_the_others_whole(shop: Path) -> None:
    loaded = load(shop, ["orders", "ordres"])
    assert names(loaded) == ["orders"]
    assert [problem.code for problem in loaded.problems] == ["PROJECT004"]
    (shop / "pipelines/broken.yaml").write_text("pipeline: [\n")
    loaded = load(shop, ["orders", "broken"])
    assert names(loaded) == ["orders"]
    assert [problem.code for problem in loaded.problems] == ["SPEC005"]


def test_a_link_that_leads_nowhere_is_told(shop: Path) -> None:
    (shop / "pipelines/linked.yaml").symlink_to("nowhere.yaml")
    loaded = load(shop)
    assert names(loaded) == ["clicks", "orders", "ticks"]
    assert [(problem.code, problem.where and problem.where.file) for problem in loaded.problems] == [
        ("SPEC001", "pipelines/linked.yaml")
    ]
    assert load(shop, ["orders"]).problems == ()
