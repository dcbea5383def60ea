"""A PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.connections.connection import ConnectionSpec
from penstock.notation.references import Mask
from penstock.problems import Fault, did_you_mean
from penstock.spec import Name, Spec

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS = 5
_APPLICATION = "penstock"
_JDBC_NAMES = {
    "application_name": "ApplicationName",
    "connect_timeout": "connectTimeout",
    "options": "options",
    "sslcert": "sslcert",
    "sslkey": "sslkey",
    "sslmode": "sslmode",
    "sslpassword": "sslpassword",
    "sslrootcert": "sslrootcert",
}
"""The parameters that an address may have, as PostgreSQL's own library and as its JDBC driver spell them."""
_LOGIN = ("user", "password")


@dataclass(frozen=True)
class _Address:
    """What a URL says, in PostgreSQL's own words."""

    hosts: str
    database: str
    login: dict[str, str]
    parameters: dict[str, str]


def _parsed(url: str) -> _Address:
    """Raises ValueError, which never holds a part of the URL that may be secret."""
    try:
        split = urlsplit(url.removeprefix("jdbc:"))
    except ValueError:
        raise ValueError("is no URL") from None
    if split.scheme not in ("postgresql", "postgres") or "://" not in url:
        raise ValueError("should be `postgresql://host:5432/database` or `jdbc:postgresql://host:5432/database`")
    account, _, hosts = split.netloc.rpartition("@")
    user, _, password = account.partition(":")
    login = {key: unquote(value) for key, value in (("user", user), ("password", password)) if value}
    spelled = {jdbc: own for own, jdbc in _JDBC_NAMES.items()}
    parameters = {}
    for key, value in parse_qsl(split.query, keep_blank_values=True):
        own = spelled.get(key, key)
        if own in _LOGIN:
            login[own] = value
        elif own in _JDBC_NAMES:
            parameters[own] = value
        else:
            known = ", ".join(_JDBC_NAMES)
            raise ValueError(f"has the parameter `{key}`{did_you_mean(key, _JDBC_NAMES)}, and may have: {known}")
    return _Address(hosts, unquote(split.path.removeprefix("/")), login, parameters)


def _checked(url: str) -> str:
    try:
        _parsed(url)
    except ValueError as error:
        raise PydanticCustomError("postgres_url", "{why}", {"why": str(error)}) from None
    return url


PostgresUrl = Annotated[str, AfterValidator(_checked)]


class PostgresAddress(Spec):
    """Where a PostgreSQL database is and who logs in: the keys that a connection, a source and a sink share."""

    url: PostgresUrl | None = Field(
        None, description="`postgresql://host:5432/database`, also with `jdbc:` before it and `?sslmode=require` after."
    )
    username: str | None = Field(None, description="The user, if the URL does not name one.")
    password: str | None = Field(None, description="The password: a `${REFERENCE}`, so that it stands in no file.")

    @property
    def place(self) -> str:
        """`host:port/database`, to be shown."""
        address = self._address
        return f"{address.hosts or 'localhost'}/{address.database}"

    def conninfo(self) -> str:
        """How psycopg connects, the password included: never to be shown."""
        from psycopg.conninfo import make_conninfo

        address = self._address
        defaults = {"application_name": _APPLICATION, "connect_timeout": str(CONNECT_SECONDS)}
        bare = f"postgresql://{address.hosts}/{quote(address.database, safe='')}"
        return make_conninfo(bare, **(defaults | address.parameters | self._login))

    def jdbc_options(self) -> dict[str, str]:
        """How Spark's JDBC connects: the URL holds no password."""
        address = self._address
        defaults = {"application_name": _APPLICATION, "connect_timeout": str(CONNECT_SECONDS)}
        parameters = {_JDBC_NAMES[key]: value for key, value in (defaults | address.parameters).items()}
        bare = f"jdbc:postgresql://{address.hosts or 'localhost'}/{quote(address.database, safe='')}"
        url = f"{bare}?{urlencode(parameters, quote_via=quote)}"
        return {"driver": "org.postgresql.Driver", "url": url} | self._login

    def hidden(self, text: str) -> str:
        """The text without the password, in any spelling that it may have there."""
        password = self._login.get("password", "")
        spellings = {password, quote(password), quote(password, safe="")}
        return Mask(spellings, {spelling: spelling for spelling in spellings})(text)

    @contextmanager
    def connected(self) -> Iterator[psycopg.Connection]:
        """A connection that commits each statement by itself. What goes wrong leaves as a Fault."""
        import psycopg

        try:
            connection = psycopg.connect(self.conninfo(), autocommit=True)
        except psycopg.Error as error:
            raise self._unconnected(error) from None
        with connection:
            try:
                yield connection
            except psycopg.Error as error:
                if isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08").startswith(("08", "57P")):
                    raise self.unreachable(str(error)) from None
                raise refused(error.sqlstate, self.hidden(one_line(str(error)))) from None

    @property
    def _address(self) -> _Address:
        if self.url is None:  # a part that names a connection, and the connection has no URL to give
            raise Fault("POSTGRES001", "the connection that is named is not one to PostgreSQL",
                        "name a connection of `type: postgres`", ("connection",))  # fmt: skip
        return _parsed(self.url)

    @property
    def _login(self) -> dict[str, str]:
        own = {"user": self.username, "password": self.password}
        return self._address.login | {key: value for key, value in own.items() if value is not None}

    def _unconnected(self, error: psycopg.Error) -> Fault:
        said = one_line(str(error))
        # libpq gives no code for it: only a server that was reached says FATAL.
        refused = "FATAL:" in said or "no password supplied" in said
        if not refused or any(busy in said for busy in ("too many", "starting up", "shutting down", "slots are")):
            return self.unreachable(said)
        reason = self.hidden(said.rpartition("FATAL:")[2].strip() or said)
        return Fault("POSTGRES002", f"PostgreSQL at `{self.place}` refuses the login: {reason}",
                     "check `username`, `password` and the database's name in `url`", ("url",))  # fmt: skip

    def unreachable(self, said: str) -> Fault:
        return Fault("POSTGRES001", f"PostgreSQL at `{self.place}` cannot be reached: {self.hidden(one_line(said))}",
                     "check host and port in `url`, and that the server runs", ("url",))  # fmt: skip


class UsesPostgres(PostgresAddress):
    """A source or sink that gives an address itself or names a connection."""

    connection: Name | None = Field(None, description="A connection of `penstock.yaml`: it gives what is not set here.")

    @model_validator(mode="after")
    def _has_address(self) -> Self:
        if self.url is None and self.connection is None:
            raise PydanticCustomError("postgres_address", "needs `url`, or `connection` with a connection's name")
        return self


class Postgres(ConnectionSpec, PostgresAddress):
    """A PostgreSQL database: where it is and who logs in."""

    type: Literal["postgres"] = "postgres"
    url: PostgresUrl = Field(
        description="`postgresql://host:5432/database`, also with `jdbc:` before it and `?sslmode=require` after."
    )

    connectors: ClassVar[tuple[str, ...]] = ("postgresql",)
    example: ClassVar[str] = (
        "{type: postgres, url: 'postgresql://localhost/shop', username: shop, password: '${PG_PASSWORD}'}"
    )

    def spark_options(self) -> dict[str, str]:
        return self.jdbc_options()


def refused(sqlstate: str | None, said: str) -> Fault:
    """PostgreSQL was reached and does not do what it was asked to."""
    if sqlstate == "42501":
        return Fault("POSTGRES006", f"PostgreSQL does not permit it: {said}",
                     "grant the user what it needs: on the table, and for a sink CREATE and USAGE on `ledger_schema`",
                     ("table",))  # fmt: skip
    return Fault("POSTGRES005", f"PostgreSQL refuses: {said}",
                 "mend the value in a step, or leave such rows out; nothing of the batch was written",
                 ("table",))  # fmt: skip


def one_line(text: str) -> str:
    return " ".join(text.split())
