"""Requests to an HTTP service."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from penstock.connections.http import HttpAccess, HttpUrl, header_name
from penstock.crash_points import reached
from penstock.notation.durations import Duration, to_milliseconds
from penstock.notation.references import Mask
from penstock.notation.sql_text import quoted
from penstock.problems import Fault, did_you_mean
from penstock.query.guarantees import Guarantee
from penstock.sinks.batch import Batch
from penstock.sinks.sink import SinkCapabilities, SinkSpec
from penstock.version import VERSION

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from penstock.sinks.http_requests import Channel

_PLACEHOLDER = re.compile(r"(?<!\$)\{([^{}]*)\}")  # in `${NAME}` the braces are a reference's
_SOUNDS_SECRET = re.compile(r"auth|key|token|secret|cookie|pass|sig|cred|session", re.IGNORECASE)
_PROBE_SECONDS = 3
_ABOUT_THE_PIPELINE = frozenset({401, 403, 405, 407})


class Http(SinkSpec, HttpAccess):
    """Each row as a request. At-least-once: a record that is sent again carries the same idempotency key.

    - 2xx: the record is taken. Any other answer under 500 refuses the record for good: it is put aside among the
      dead letters, and the rest goes on. Answers named in `stop_on`, and redirects, are about the pipeline and not
      about the record: the batch fails at once.
    - 408, 425, 429, 5xx and faults of the network are tried again, after the time that `Retry-After` asks for or
      longer each time. When the attempts are used up, the batch fails; it is run again on the next start.
    - The idempotency key is a hash of the row, or of the columns in `idempotency_key`. Rows that are alike have the
      same one.
    - With `rows_per_request`, the key is that of the whole request. A batch that is run again makes the same
      requests as long as its rows come in the same partitions; they are put in the order of their JSON.
    - Certificates are verified, redirects are not followed, proxies of the environment are not used.
    - Requests are sent by the tasks, so Penstock must be installed where they run.
    """

    type: Literal["http"] = "http"
    connection: str | None = Field(None, description="A connection of `penstock.yaml`. What is given here wins.")
    url: HttpUrl | None = Field(
        None, description="The address. `{column}` in its path or query stands for the row's value, quoted."
    )
    endpoint: str | None = Field(
        None, description="Added to the `url`, of the connection most often. `{column}` stands for the row's value."
    )
    method: Literal["POST", "PUT", "PATCH", "DELETE"] = Field("POST", description="`DELETE` sends no body.")
    body: str | None = Field(
        None, description="A STRING or BINARY column to send as it is; the row as JSON by default."
    )
    content_type: str = Field("application/json", description="What the body is.", pattern=r"^[\x21-\x7e][\x20-\x7e]*$")
    ignore_null_fields: bool = Field(True, description="Leaves NULL fields out of the JSON.")
    rows_per_request: int = Field(
        1, gt=0, le=100_000, description="With more than 1, a request holds a JSON array of up to so many rows."
    )
    idempotency_key: tuple[str, ...] = Field(
        (), description="The columns that tell one record from another, and one version of it; all by default."
    )
    idempotency_header: Annotated[str, AfterValidator(header_name)] = Field(
        "Idempotency-Key", description="The header that holds the idempotency key."
    )
    concurrency: int = Field(8, gt=0, le=256, description="Requests under way at once in each task.")
    timeout: Duration = Field("10 seconds", description="The longest wait for a connection, or for an answer.")
    max_attempts: int = Field(8, gt=0, le=100, description="How often a request is tried.")
    retry_for: Duration = Field("1 minute", description="No further attempt is made after this time.")
    stop_on: tuple[Annotated[int, Field(ge=400, le=499)], ...] | None = Field(
        None,
        description="Answers that fail the batch instead of refusing the record: by default 401, 403, 405 and 407,"
        " and 404 if the URL is the same for all rows.",
    )

    capabilities: ClassVar[SinkCapabilities] = SinkCapabilities(
        Guarantee("at-least-once", "a repeated record carries the same idempotency key"),
        output_modes=frozenset({"append", "update"}),
        native=False,
    )
    example: ClassVar[str] = (
        "{of: alerts, type: http, url: 'https://api.example.com/alerts', token: '${API_TOKEN}', idempotency_key: [id]}"
    )

    @model_validator(mode="after")
    def _makes_sense(self) -> Self:
        if self.url is None and self.connection is None:
            raise PydanticCustomError("url", "an http sink needs `url`, or a `connection` that has one")
        if self.endpoint is not None and ("://" in self.endpoint or (self.url and "?" in self.url)):
            raise PydanticCustomError("url", "`endpoint` is added to the path of `url`: it cannot follow a `?`")
        if self.rows_per_request > 1 and (self.body or self.placeholders or self.method == "DELETE"):
            said = "`body`, `method: DELETE` and a {column} in the URL are for single rows, not for `rows_per_request`"
            raise PydanticCustomError("rows", said)
        own = {self.idempotency_header.lower(), "content-length", "host", "transfer-encoding"}
        for name in self.headers:
            if name.lower() in own:
                raise PydanticCustomError("header", "the header `{name}` is set by Penstock", {"name": name})
        return self

    @property
    def placeholders(self) -> tuple[str, ...]:
        """The columns that the URL needs."""
        return tuple(dict.fromkeys(_PLACEHOLDER.findall(f"{self.url or ''}/{self.endpoint or ''}")))

    def probe(self) -> None:
        import socket
        import ssl

        if self.ca_file is not None:
            try:
                ssl.create_default_context(cafile=self.ca_file)
            except OSError as error:
                raise Fault("HTTP001", f"`{self.ca_file}` cannot be read as authorities: {error.strerror or error}",
                            "name a PEM file that is on every machine", ("ca_file",)) from None  # fmt: skip
        parts = urlsplit(self.proxy or self._address())
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        try:
            socket.create_connection((host, port), _PROBE_SECONDS).close()
        except OSError as error:
            raise Fault("HTTP001", f"`{host}:{port}` cannot be reached: {error.strerror or error}",
                        "start the server, or mend the address", ("proxy" if self.proxy else "url",)
                        ) from None  # fmt: skip

    def judge(self, rows: DataFrame) -> None:
        from pyspark.errors import AnalysisException

        self._address()
        for key, names in (("idempotency_key", self.idempotency_key), ("body", (self.body,) if self.body else ()),
                           ("endpoint" if self.endpoint else "url", self.placeholders)):  # fmt: skip
            for name in names:
                _require_column(rows, name, key)
        if self.body and rows.select(_column(self.body)).schema[0].dataType.typeName() not in ("string", "binary"):
            raise Fault("HTTP004", f"the column `{self.body}` is neither STRING nor BINARY",
                        "cast it, or leave `body` out: then the row is sent as JSON", ("body",))  # fmt: skip
        try:
            _ = self._letters(rows).schema
        except AnalysisException as error:
            raise Fault("HTTP004", f"the rows cannot be written as JSON: {str(error).splitlines()[0]}",
                        "cast the column to a plain type in a step before") from None  # fmt: skip

    def write(self, rows: DataFrame, batch: Batch) -> None:
        from penstock.sinks.http_requests import RESULTS, send_all

        channel = self._channel()

        def send(batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
            for results in send_all(channel, iter(batches)):
                reached("in_task")
                yield results

        # Kept: made a second time, the results would send every record a second time.
        results = self._letters(rows).mapInArrow(send, RESULTS).persist()
        try:
            told = results.where("kind != 'refused'").select("kind", "reason", "records").collect()
            sent = sum(row.records for row in told if row.kind == "sent")
            for kind in ("stopped", "failed"):
                if reasons := [row.reason for row in told if row.kind == kind]:
                    raise self._fault(kind, reasons[0], sent)
            if any(row.records for row in told if row.kind == "put_aside"):
                batch.put_aside(results.where("kind = 'refused'").select("raw", "reason"))
        finally:
            results.unpersist()

    def _fault(self, kind: str, reason: str, sent: int) -> Fault:
        parts = urlsplit(self._address())
        what = f"{self.method} {parts._replace(query='').geturl()}"
        so_far = f"{sent} {'record' if sent == 1 else 'records'} of the batch got through"
        if kind == "stopped":
            return Fault("HTTP003", f"{what} is turned away: {reason}; {so_far}",
                         "mend the address or the credentials; answers about single records are left out of `stop_on`",
                         ("url",))  # fmt: skip
        return Fault("HTTP002", f"{what} does not get through: {reason}; {so_far}",
                     "see to the server, or allow more time: `max_attempts`, `retry_for`, `timeout`. Then run again",
                     ("url",))  # fmt: skip

    def _address(self) -> str:
        if self.url is None:
            raise Fault("HTTP004", f"the connection `{self.connection}` gives no URL",
                        "name a connection of `type: http`, or write `url`", ("connection",))  # fmt: skip
        if self.endpoint is None:
            return self.url
        return f"{self.url.rstrip('/')}/{self.endpoint.lstrip('/')}"

    def _letters(self, rows: DataFrame) -> DataFrame:
        """The records as tasks take them, each with the fields of a `HttpRecord`."""
        from pyspark.sql.functions import array, coalesce, sha2, when

        row = _json(rows.columns, ignore_nulls=False)
        key = sha2(row, 256)
        if self.idempotency_key:
            named = [_column(name) for name in self.idempotency_key]
            # Without a value in any of them, all such rows would be taken for one.
            of_columns = sha2(_json(self.idempotency_key, ignore_nulls=False), 256)
            key = when(coalesce(*(column.cast("string") for column in named)).isNotNull(), of_columns).otherwise(key)
        body = _column(self.body) if self.body else _json(rows.columns, ignore_nulls=self.ignore_null_fields)
        values = array(*(_column(name).cast("string") for name in self.placeholders)).cast("array<string>")
        letters = rows.select(
            body.cast("binary").alias("body"),
            when(body.isNull(), row.cast("binary")).alias("row"),
            key.alias("key"),
            values.alias("values"),
        )
        return letters.sortWithinPartitions("body", "key") if self.rows_per_request > 1 else letters

    def _channel(self) -> Channel:
        from uuid import uuid4

        from penstock.sinks.http_requests import Channel

        given = {
            name: value for name, value in self.all_headers().items() if name.lower() != self.idempotency_header.lower()
        }
        headers = {"User-Agent": f"penstock/{VERSION}"} | given
        if self.method != "DELETE" and "content-type" not in map(str.lower, headers):
            headers["Content-Type"] = self.content_type
        if self.stop_on is not None:
            stop_on = frozenset(self.stop_on)
        else:
            stop_on = _ABOUT_THE_PIPELINE if self.placeholders else _ABOUT_THE_PIPELINE | {404}
        return Channel(
            run=str(uuid4()),
            method=self.method,
            url=self._address(),
            placeholders=self.placeholders,
            headers=headers,
            key_header=self.idempotency_header,
            sends_body=self.method != "DELETE",
            rows_per_request=self.rows_per_request,
            concurrency=self.concurrency,
            timeout_seconds=to_milliseconds(self.timeout) / 1_000,
            max_attempts=self.max_attempts,
            retry_seconds=to_milliseconds(self.retry_for) / 1_000,
            stop_on=stop_on,
            proxy=self.proxy,
            ca_file=self.ca_file,
            mask=self._mask(),
        )

    def _mask(self) -> Mask:
        """Hides what logs in, should a server repeat it in its answer."""
        named = [*self.all_headers().items(), *parse_qsl(urlsplit(self._address()).query)]
        kept = [value.split(" ")[-1] for name, value in named if _SOUNDS_SECRET.search(name)]
        secrets = {str(number): value for number, value in enumerate((*kept, self.password)) if value}
        return Mask(secrets, secrets)


def _require_column(rows: DataFrame, name: str, key: str) -> None:
    known = {column.lower(): column for column in rows.columns}
    if name.lower() not in known:
        raise Fault("HTTP004", f"the rows have no column `{name}`{did_you_mean(name, rows.columns)}",
                    f"name one of: {', '.join(rows.columns)}", (key,))  # fmt: skip


def _column(name: str) -> Column:
    from pyspark.sql.functions import col

    return col(quoted(name))


def _json(names: list[str] | tuple[str, ...], *, ignore_nulls: bool) -> Column:
    from pyspark.sql.functions import struct, to_json

    return to_json(struct(*map(_column, names)), {"ignoreNullFields": str(ignore_nulls).lower()})
