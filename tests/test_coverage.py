"""Every feature of the guide has a proof, and the page that says so is no older than the tests."""

from __future__ import annotations

from pathlib import Path

from penstock.checks.every_rule import rules
from tests.features import SECTIONS
from tests.proofs import proofs

FEATURES = {feature.id: feature for section in SECTIONS for feature in section.features}


def test_every_feature_is_listed_once() -> None:
    assert len(FEATURES) == sum(len(section.features) for section in SECTIONS)


def test_every_feature_is_proved() -> None:
    proved = {proof.feature for proof in proofs()} | {name for name, feature in FEATURES.items() if feature.rule}
    assert [name for name in FEATURES if name not in proved] == []


def test_every_rule_that_stands_for_a_proof_has_its_cases() -> None:
    known = {rule.code for rule in rules() if rule.needs != "disk"}
    assert {feature.rule for feature in FEATURES.values() if feature.rule} <= known


def test_every_mark_names_a_feature() -> None:
    assert [proof for proof in proofs() if proof.feature not in FEATURES] == []


def test_marks_are_found_on_tests_cases_classes_and_modules(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text(
        "pytestmark = [pytest.mark.spark, pytest.mark.covers('a')]\n"
        "@pytest.mark.covers('b', 'c')\n"
        "def test_b(): ...\n"
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.covers('d')), 2])\n"
        "def test_d(x): ...\n"
        "@pytest.mark.covers('e')\n"
        "class TestE:\n"
        "    def test_e(self): ...\n"
        "def no_test(): ...\n"
        "CASES = [Case('x', covers=('query.stop',))]\n"
        "@pytest.mark.covers(*sorted({feature for case in CASES for feature in case.covers}))\n"
        "def test_cases(): ...\n"
    )
    found = {(proof.feature, proof.test) for proof in proofs(tmp_path)}
    own = {("b", "test_b"), ("c", "test_b"), ("d", "test_d"), ("e", "test_e"), ("query.stop", "test_cases")}
    assert found == own | {("a", test) for test in ("test_b", "test_d", "test_e", "test_cases")}
