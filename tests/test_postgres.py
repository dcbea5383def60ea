"""The PostgreSQL of the tests is a real one."""

from __future__ import annotations

import psycopg
import pytest

pytestmark = pytest.mark.services


def test_what_is_written_outlives_a_restart(postgres, pg) -> None:
    pg.execute("CREATE TABLE kept (id int)")
    pg.execute("INSERT INTO kept VALUES (1)")
    postgres.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.url, connect_timeout=5)
    postgres.start()
    with psycopg.connect(postgres.url) as connection:
        assert connection.execute("SELECT id FROM kept").fetchall() == [(1,)]


def test_every_test_starts_with_an_empty_schema(pg) -> None:
    assert pg.execute("SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'").fetchone() == (0,)


def test_a_wrong_password_is_refused(postgres) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres.url.replace("secret", "wrong"))
