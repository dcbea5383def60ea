"""A schema registry, asked over HTTP: which schemas a subject has, and under which ids."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from pydantic import Field

from penstock.notation.durations import Duration, to_milliseconds
from penstock.notation.paths import PathText
from penstock.problems import Fault
from penstock.spec import Spec

if TYPE_CHECKING:
    import httpx

_MEDIA = "application/vnd.schemaregistry.v1+json"


class Registry(Spec):
    """A schema registry, such as Confluent's, Apicurio's or Karapace: where it is and who asks."""

    url: str = Field(pattern=r"^https?://", description="Such as `https://registry:8081`.")
    username: str | None = Field(None, description="The user, where it wants one.")
    password: str | None = Field(None, description="The password: a `${REFERENCE}`, so that it stands in no file.")
    token: str | None = Field(None, description="A bearer token in place of user and password: a `${REFERENCE}`.")
    ca_file: PathText | None = Field(None, description="Certificates to trust, as a PEM file.")
    timeout: Duration = Field("5 seconds", description="How long to wait for an answer.")
    subject: str | None = Field(
        None, description="The subject of the schemas; by default `<topic>-value` or, for keys, `<topic>-key`."
    )


@dataclass(frozen=True)
class Registered:
    """A schema under the id that messages carry."""

    id: int
    schema: str
    has_references: bool = False


class Subjects:
    """A registry's subjects. Raises Fault: REGISTRY001 it cannot be asked, REGISTRY002 it has no such subject."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def names(self) -> list[str]:
        return list(self._get("/subjects"))

    def versions(self, subject: str) -> list[Registered]:
        """All schemas of a subject, the oldest first."""
        numbers = sorted(self._get(f"/subjects/{_path(subject)}/versions", subject))
        return [self._version(subject, number) for number in numbers]

    def register(self, subject: str, schema: str) -> int:
        """The id of a schema under a subject; it is added if it is new and the registry finds it compatible."""
        answer = self._ask("POST", f"/subjects/{_path(subject)}/versions", {"schema": schema})
        return int(self._checked(answer, subject)["id"])

    def _version(self, subject: str, number: int) -> Registered:
        found = self._get(f"/subjects/{_path(subject)}/versions/{number}", subject)
        return Registered(int(found["id"]), str(found["schema"]), bool(found.get("references")))

    def _get(self, path: str, subject: str = "") -> Any:
        return self._checked(self._ask("GET", path), subject)

    def _ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        import httpx

        try:
            return self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            said = str(error) or type(error).__name__
            raise Fault(
                "REGISTRY001", f"the schema registry at {self._registry.url} cannot be asked: {said}",
                "look at `url`, and whether the registry runs and this machine may reach it", ("format", "registry"),
            ) from None  # fmt: skip

    def _checked(self, answer: httpx.Response, subject: str) -> Any:
        url = self._registry.url
        try:
            said = answer.json()
        except ValueError:
            said = None
        if answer.status_code == 404 and subject:
            raise Fault("REGISTRY002", f"the schema registry at {url} has no subject `{subject}`",
                        "register its schema, or name another one: `subject:`", ("format", "registry"))  # fmt: skip
        if answer.status_code != 200 or said is None:
            words = said.get("message") if isinstance(said, dict) else answer.reason_phrase
            raise Fault(
                "REGISTRY001", f"the schema registry at {url} refuses: {answer.status_code} {words}",
                "look at `username`, `password` and `token`, and at what the registry says", ("format", "registry"),
            )  # fmt: skip
        return said

    @cached_property
    def _client(self) -> httpx.Client:
        import ssl

        import httpx

        registry = self._registry
        login = (registry.username, registry.password or "") if registry.username is not None else None
        token = {"Authorization": f"Bearer {registry.token}"} if registry.token else {}
        try:
            trust: Any = ssl.create_default_context(cafile=registry.ca_file) if registry.ca_file else True
        except OSError as error:
            raise Fault("REGISTRY001", f"`{registry.ca_file}` cannot be read: {error.strerror or error}",
                        "name a PEM file with certificates", ("format", "registry", "ca_file")) from None  # fmt: skip
        return httpx.Client(
            base_url=registry.url.rstrip("/"),
            auth=login,
            headers={"Content-Type": _MEDIA, "Accept": _MEDIA, **token},
            timeout=to_milliseconds(registry.timeout) / 1_000,
            verify=trust,
        )


def _path(subject: str) -> str:
    return quote(subject, safe="")
