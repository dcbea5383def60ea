"""An HTTP service."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Annotated, ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.connections.connection import ConnectionSpec
from penstock.notation.paths import PathText
from penstock.notation.references import has_reference
from penstock.spec import Spec

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?|")


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise PydanticCustomError("url", "is not a URL") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise PydanticCustomError("url", "should start with `http://` or `https://` and a host")
    if "@" in parts.netloc:
        raise PydanticCustomError("url", "holds a user or password: write `username` and `password`, or `token`")
    if "{" in parts.netloc:
        raise PydanticCustomError("url", "has a {column} before the path: rows cannot choose the server")
    if parts.fragment or re.search(r"[\x00-\x20\x7f]", url):
        raise PydanticCustomError("url", "has a fragment (`#`), a space or a control character")
    return url


HttpUrl = Annotated[str, AfterValidator(_checked_url)]
"""The address of a server, without credentials."""


def header_name(name: str) -> str:
    """The name, if a header can have it."""
    if not _TOKEN.fullmatch(name):
        raise PydanticCustomError("header", "`{name}` is no name of a header", {"name": name})
    return name


class HttpAccess(Spec):
    """How to get in, and which way. Proxies and credentials of the environment are not used."""

    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers of every request; secrets as `${REFERENCE}`."
    )
    token: str | None = Field(None, description="Sent as `Authorization: Bearer …`: a `${REFERENCE}`.")
    username: str | None = Field(None, description="The user, sent with `password` by basic auth.")
    password: str | None = Field(None, description="The password: a `${REFERENCE}`, so that it stands in no file.")
    proxy: HttpUrl | None = Field(None, description="The proxy to go through. Those of the environment are not used.")
    ca_file: PathText | None = Field(
        None, description="A PEM file with the authorities to trust, on every machine; the well-known ones by default."
    )

    @model_validator(mode="after")
    def _one_way_to_log_in(self) -> Self:
        given = {name.lower(): header_name(name) for name in self.headers}
        for name, value in (("token", self.token or ""), *self.headers.items()):
            if not has_reference(value) and not _VALUE.fullmatch(value):
                said = "`{name}` holds a line break, or a character that no header can hold"
                raise PydanticCustomError("header", said, {"name": name})
        ways = [way for way in ("token", "username") if getattr(self, way) is not None]
        if "authorization" in given:
            ways.append(given["authorization"])
        if len(ways) > 1:
            both = " and ".join(f"`{way}`" for way in ways)
            raise PydanticCustomError("auth", "{both} are two ways to log in: keep one", {"both": both})
        if (self.username is None) != (self.password is None):
            raise PydanticCustomError("auth", "`username` and `password` go together")
        return self

    def all_headers(self) -> dict[str, str]:
        """The headers with the one that logs in."""
        if "authorization" in map(str.lower, self.headers):
            return self.headers
        if self.token is not None:
            return self.headers | {"Authorization": f"Bearer {self.token}"}
        if self.username is not None:
            pair = f"{self.username}:{self.password}".encode()
            return self.headers | {"Authorization": f"Basic {b64encode(pair).decode()}"}
        return self.headers


class Http(ConnectionSpec, HttpAccess):
    """An HTTP service: where it is and how to log in."""

    type: Literal["http"] = "http"
    url: HttpUrl = Field(
        description="`https://host/path`, without a query; a sink adds its `endpoint`.", pattern=r"^[^{?]*$"
    )

    example: ClassVar[str] = "{type: http, url: 'https://api.example.com/v1', token: '${API_TOKEN}'}"

    def spark_options(self) -> dict[str, str]:
        return {}  # no data source of Spark's speaks HTTP
