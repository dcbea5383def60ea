"""`${NAME}`: where it is seen, what it becomes, and what of it is hidden."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.notation import references
from penstock.notation.references import MASK, Mask, Unset, line_without_secrets

ENVIRON = {"HOST": "db", "PORT": "5432", "EMPTY": "", "ODD": "a$${b}${HOST}"}


@pytest.mark.parametrize(
    ("written", "resolved"),
    [
        ("plain", "plain"),
        ("${HOST}", "db"),
        ("${HOST}:${PORT}", "db:5432"),
        ("${NONE:-localhost}", "localhost"),
        ("${NONE:-}", ""),
        ("${HOST:-localhost}", "db"),
        ("${EMPTY:-localhost}", "localhost"),
        ("${NONE:-jdbc:postgresql://a:-b}", "jdbc:postgresql://a:-b"),
        ("$${HOST}", "${HOST}"),
        ("$${HOST}${HOST}", "${HOST}db"),
        ("$HOST {HOST} ${} ${1A} ${A-B}", "$HOST {HOST} ${} ${1A} ${A-B}"),
        ("${ODD}", "a$${b}${HOST}"),
        (5, 5),
        (None, None),
        ({"a": ["${HOST}", {"b": "${PORT}"}], "c": ("${HOST}",)}, {"a": ["db", {"b": "5432"}], "c": ["db"]}),
    ],
)
def test_resolves_every_reference_once(written: Any, resolved: Any) -> None:
    assert references.resolve(written, ENVIRON) == resolved


@pytest.mark.parametrize("written", ["${NONE}", "x${NONE}y", ["a", {"b": "${NONE}"}], "${EMPTY}"])
def test_a_variable_that_is_not_set_has_no_value(written: Any) -> None:
    with pytest.raises(Unset) as raised:
        references.resolve(written, ENVIRON)
    assert raised.value.name in ("NONE", "EMPTY")


@pytest.mark.parametrize(
    ("value", "seen"),
    [("${A}", True), ("a${A:-b}c", True), ("$${A}", False), ("${}", False), ("", False), (5, False), (["${A}"], False)],
)
def test_sees_references(value: object, seen: bool) -> None:
    assert references.has_reference(value) is seen


def test_names_every_variable_inside_a_value() -> None:
    value = {"a": "${A}${B:-x}", "b": ["${C}", {"d": ("${D}", 5, None)}], "e": "$${E}"}
    assert references.names(value) == {"A", "B", "C", "D"}
    assert references.names({}) == set()


def test_sketches_sql_without_any_value() -> None:
    assert references.sketch("SELECT ${LIMIT:-5}, ${KEY} FROM a") == "SELECT 5, NULL FROM a"


@given(st.text(), st.text(alphabet="${}:-AB"), st.dictionaries(st.sampled_from("AB"), st.text()))
def test_any_text_resolves_or_names_what_is_unset(head: str, tail: str, environ: Mapping[str, str]) -> None:
    text = head + tail
    unset = {name for name in references.names(text) if not environ.get(name)}
    try:
        resolved = references.resolve(text, environ)
    except Unset as error:
        resolved = error
    if isinstance(resolved, Unset):
        assert resolved.name in unset
    elif "${" not in text:
        assert resolved == text


@pytest.mark.parametrize(
    ("name", "secret"),
    [("PG_PASSWORD", True), ("db_token", True), ("API_KEY", True), ("APIKEY", True), ("MY_CREDENTIALS", True),
     ("DECLARED", True), ("HOST", False), ("KEYS", False)],
)  # fmt: skip
def test_a_name_is_secret_when_it_is_declared_or_sounds_so(name: str, secret: bool) -> None:
    mask = Mask(["DECLARED"], {name: "hunter2"})
    assert mask("it is hunter2!") == (f"it is {MASK}!" if secret else "it is hunter2!")


def test_a_secret_inside_a_secret_leaves_no_rest() -> None:
    mask = Mask([], {"A_TOKEN": "abcd", "B_TOKEN": "abcdefgh", "C_TOKEN": "xxabcdefghyy"})
    assert mask("abcdefgh and abcd and xxabcdefghyy") == f"{MASK} and {MASK} and {MASK}"


def test_a_short_secret_is_hidden_only_where_it_stands_alone() -> None:
    mask = Mask(["PIN"], {"PIN": "7"})
    assert mask("pin=7, room 1776, x7") == f"pin={MASK}, room 1776, x7"


@pytest.mark.parametrize("secret", ["a.*b(c", r"back\slash", 'with"quote', "two\nlines"])
def test_secrets_are_texts_not_patterns_and_hidden_in_json_too(secret: str) -> None:
    mask = Mask(["S"], {"S": secret})
    assert mask(f"<{secret}>") == f"<{MASK}>"
    assert json.loads(mask(json.dumps({"s": secret}))) == {"s": MASK}


def test_without_secrets_nothing_is_hidden() -> None:
    assert Mask(["EMPTY", "NOT_THERE"], {"EMPTY": ""})("anything at all") == "anything at all"


def test_hides_deeply_and_leaves_the_rest() -> None:
    mask = Mask(["S"], {"S": "hunter2"})
    assert mask.deeply({"a": ["hunter2", 5, {"b": ("x hunter2",)}], "c": None}) == {
        "a": [MASK, 5, {"b": [f"x {MASK}"]}],
        "c": None,
    }


@given(st.text(min_size=4), st.text(), st.text())
def test_no_secret_is_left_in_any_text(secret: str, before: str, after: str) -> None:
    hidden = Mask(["S"], {"S": secret})(before + secret + after)
    assert secret not in hidden.replace(MASK, "") or secret in MASK or secret in before + after
    assert MASK in hidden


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  password: hunter2", "  password: ••••••"),
        ('{url: "postgresql://shop:hunter2@db/shop", table: t}', '{url: "postgresql://shop:••••••@db/shop", table: t}'),
        ("{type: spark, options: {api_token: 'hunter2', a: b}}", "{type: spark, options: {api_token: ••••••, a: b}}"),
        ('sources.Kafka(password="hunter2", topics=["a"])', 'sources.Kafka(password=••••••, topics=["a"])'),
        ("url: jdbc:mysql://db/shop?password=hunter2&ssl=true", "url: jdbc:mysql://db/shop?password=••••••&ssl=true"),
        ("  sasl.jaas.config: 'a required password=\"hunter2\";'", "  sasl.jaas.config: ••••••"),
        ('  "ssl.key.password": "hun\\"ter2" # why', '  "ssl.key.password": •••••• # why'),
        ("  password: ${PASSWORD}", "  password: ${PASSWORD}"),
        ("  secrets: [PG_PASSWORD]", "  secrets: [PG_PASSWORD]"),
        ("  idempotency_key: [id]", "  idempotency_key: [id]"),
        ("  url: postgresql://shop:${PASSWORD}@db/shop", "  url: postgresql://shop:${PASSWORD}@db/shop"),
    ],
)  # fmt: skip
def test_a_line_of_a_file_is_shown_without_secrets(line: str, shown: str):
    assert line_without_secrets(line) == shown
