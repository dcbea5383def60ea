"""Requests as a Spark task sends them: bounded concurrency, retries, and what became of each record."""

from __future__ import annotations

import random
import ssl
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote, urlsplit

from penstock.notation.references import Mask

if TYPE_CHECKING:
    import httpx
    import pyarrow as pa
    from tenacity import RetryCallState, Retrying

RESULTS = "kind STRING, raw BINARY, reason STRING, records BIGINT"
"""What a task gives back: a row for each record that was refused, and rows that count what was sent and put aside."""
RETRIED = frozenset({408, 425, 429})
_SHOWN_CHARACTERS = 200
_READ_BYTES = 65_536
_ROWS_AT_ONCE = 1_000
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.2, 10.0

Kind = Literal["sent", "refused", "failed", "stopped"]


@dataclass(frozen=True)
class HttpRecord:
    """One record on its way: its body, its key, and the values of the URL's placeholders."""

    body: bytes | None
    row: bytes | None
    """The row as JSON, where there is no body."""
    key: str
    values: Sequence[str | None]


@dataclass(frozen=True)
class HttpOutcome:
    """What became of a request. `failed`: no good answer in time. `stopped`: an answer that no record can change."""

    kind: Kind
    reason: str = ""


@dataclass(frozen=True)
class Channel:
    """All that a task must know to send: plain values, so that it can travel."""

    run: str
    """Stands for one try of one batch. Where one task has given up, the others of the process need not try."""
    method: str
    url: str
    placeholders: tuple[str, ...]
    headers: dict[str, str]
    key_header: str
    sends_body: bool
    rows_per_request: int
    concurrency: int
    timeout_seconds: float
    max_attempts: int
    retry_seconds: float
    stop_on: frozenset[int]
    proxy: str | None
    ca_file: str | None
    mask: Mask


class _NotNow(Exception):
    """The server cannot take it at this moment."""

    def __init__(self, reason: str, retry_after_seconds: float | None = None) -> None:
        self.reason, self.retry_after_seconds = reason, retry_after_seconds
        super().__init__(reason)


_given_up: dict[str, HttpOutcome] = {}
"""By run, why this process has stopped sending. Only the last run is kept."""


def send_all(channel: Channel, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sends the records of a partition, and tells what became of them in rows of `RESULTS`.

    After the first request that fails or is stopped, no further one is begun.
    """
    sent, put_aside, end = 0, 0, _given_up.get(channel.run)
    refused: list[tuple[str, bytes | None, str | None, int]] = []
    if end is None:
        with _client(channel) as client:
            sender = _Sender(channel, client)
            for letters, outcome in _in_parallel(sender, _requests(channel, batches)):
                if outcome.kind == "sent":
                    sent += len(letters)
                elif outcome.kind == "refused":
                    put_aside += len(letters)
                    refused += [("refused", letter.body or letter.row, outcome.reason, 1) for letter in letters]
                    if len(refused) >= _ROWS_AT_ONCE:
                        yield _rows(refused)
                        refused.clear()
            end = sender.end
    if end is not None:
        _given_up.clear()
        _given_up[channel.run] = end
        for _ in batches:
            pass  # Spark ends a process that leaves its input unread, and what it knows with it
        yield _rows([(end.kind, None, end.reason, 0)])
    yield _rows([*refused, ("put_aside", None, None, put_aside), ("sent", None, None, sent)])


@dataclass
class _Sender:
    """Sends from several threads; the first of them that cannot go on ends it for all."""

    channel: Channel
    client: httpx.Client
    end: HttpOutcome | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def send(self, letters: list[HttpRecord]) -> HttpOutcome | None:
        """What became of a request; None if it was not begun."""
        if self.ended.is_set():
            return None
        outcome = self._sent(letters)
        if outcome.kind in ("failed", "stopped"):
            self.end = self.end or outcome
            self.ended.set()
        return outcome

    def _sent(self, letters: list[HttpRecord]) -> HttpOutcome:
        import httpx

        channel = self.channel
        unfit = _unfit(channel, letters)
        if unfit:
            return HttpOutcome("refused", unfit)
        headers = channel.headers | {channel.key_header: _key(letters)}
        content = _content(channel, letters)
        attempts = _retrying(channel, self.ended)
        try:
            return attempts(self._attempt, _filled(channel, letters[0]), headers, content)
        except _NotNow as late:
            tries = attempts.statistics.get("attempt_number", 1)
            return HttpOutcome("failed", f"{late.reason} (tried {tries} {'time' if tries == 1 else 'times'})")
        except httpx.InvalidURL as error:
            return HttpOutcome("refused", f"no URL: {channel.mask(str(error))}")

    def _attempt(self, url: str, headers: dict[str, str], content: bytes | None) -> HttpOutcome:
        import httpx

        try:
            with self.client.stream(self.channel.method, url, headers=headers, content=content) as response:
                return self._judged(response)
        except (httpx.UnsupportedProtocol, httpx.LocalProtocolError) as error:
            return HttpOutcome("stopped", self.channel.mask(f"{type(error).__name__}: {error}"))
        except httpx.TransportError as error:
            said = self.channel.mask(f"{type(error).__name__}: {error}".rstrip(": "))
            if "CERTIFICATE_VERIFY_FAILED" in said:
                return HttpOutcome("stopped", said)  # time heals no certificate
            raise _NotNow(said) from None

    def _judged(self, response: httpx.Response) -> HttpOutcome:
        status, text = response.status_code, _text_of(response)
        if 200 <= status < 300:
            return HttpOutcome("sent")
        reason = self.channel.mask(f"HTTP {status}: {text}" if text else f"HTTP {status}")
        if status in RETRIED or status >= 500:
            raise _NotNow(reason, seconds_asked_for(response.headers.get("Retry-After")))
        if status < 400:
            goal = urlsplit(response.headers.get("Location", ""))._replace(query="", fragment="").geturl()
            return HttpOutcome("stopped", self.channel.mask(f"HTTP {status}: it redirects to {goal}"))
        return HttpOutcome("stopped" if status in self.channel.stop_on else "refused", reason)


def _client(channel: Channel) -> httpx.Client:
    import httpx

    most = channel.concurrency
    return httpx.Client(
        verify=_trusted(channel.ca_file),
        timeout=channel.timeout_seconds,
        limits=httpx.Limits(max_connections=most, max_keepalive_connections=most),
        proxy=channel.proxy,
        follow_redirects=False,
        trust_env=False,
    )


@cache  # reading the authorities takes longer than a request
def _trusted(ca_file: str | None) -> ssl.SSLContext:
    import httpx

    return ssl.create_default_context(cafile=ca_file) if ca_file else httpx.create_ssl_context()


def _requests(channel: Channel, batches: Iterator[pa.RecordBatch]) -> Iterator[list[HttpRecord]]:
    letters = (
        HttpRecord(*row) for batch in batches for row in zip(*(column.to_pylist() for column in batch), strict=True)
    )
    while some := list(islice(letters, channel.rows_per_request)):
        yield some


def _in_parallel(
    sender: _Sender, requests: Iterator[list[HttpRecord]]
) -> Iterator[tuple[list[HttpRecord], HttpOutcome]]:
    """Requests with their outcomes, in their order; a few wait in line, so that no thread is idle for a slow one."""
    waiting: deque[tuple[list[HttpRecord], Future[HttpOutcome | None]]] = deque()
    most = 4 * sender.channel.concurrency

    def first() -> Iterator[tuple[list[HttpRecord], HttpOutcome]]:
        letters, future = waiting.popleft()
        if (outcome := future.result()) is not None:
            yield letters, outcome

    with ThreadPoolExecutor(sender.channel.concurrency, thread_name_prefix="http") as pool:
        for letters in requests:
            if sender.ended.is_set():
                break
            waiting.append((letters, pool.submit(sender.send, letters)))
            if len(waiting) >= most:
                yield from first()
        while waiting:
            yield from first()


def _unfit(channel: Channel, letters: list[HttpRecord]) -> str | None:
    """Why no request can be made of a record."""
    for letter in letters:
        if channel.sends_body and letter.body is None:
            return "the body is NULL"
        for name, value in zip(channel.placeholders, letter.values, strict=True):
            # An empty segment, or one of dots alone, would lead to another resource than the record's.
            if not (value or "").strip("."):
                return f"`{name}` is {'NULL' if value is None else repr(value)}, and the URL needs it"
    return None


def _filled(channel: Channel, letter: HttpRecord) -> str:
    url = channel.url
    for name, value in zip(channel.placeholders, letter.values, strict=True):
        url = url.replace(f"{{{name}}}", quote(value or "", safe=""))
    return url


def _content(channel: Channel, letters: list[HttpRecord]) -> bytes | None:
    if not channel.sends_body:
        return None
    if channel.rows_per_request == 1:
        return letters[0].body
    return b"[" + b",".join(letter.body or b"" for letter in letters) + b"]"


def _key(letters: list[HttpRecord]) -> str:
    """The idempotency key of a request: the record's own, or one made of those of all its records."""
    if len(letters) == 1:
        return letters[0].key
    return sha256("".join(letter.key for letter in letters).encode()).hexdigest()


def _retrying(channel: Channel, ended: threading.Event) -> Retrying:
    import tenacity

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(_NotNow),
        wait=_wait_seconds,
        stop=tenacity.stop_any(
            tenacity.stop_after_attempt(channel.max_attempts),
            tenacity.stop_before_delay(channel.retry_seconds),
            tenacity.stop_when_event_set(ended),
        ),
        sleep=tenacity.sleep_using_event(ended),
        reraise=True,
    )


def _wait_seconds(state: RetryCallState) -> float:
    """As long as the server asks for; else longer each time, and never the same for two that failed together."""
    error = state.outcome.exception() if state.outcome else None
    if isinstance(error, _NotNow) and error.retry_after_seconds is not None:
        return error.retry_after_seconds
    longest = min(_FIRST_WAIT_SECONDS * 2 ** (state.attempt_number - 1), _LONGEST_WAIT_SECONDS)
    return random.uniform(longest / 2, longest)  # noqa: S311 - no secret depends on it


def seconds_asked_for(retry_after: str | None) -> float | None:
    """What `Retry-After` asks for: seconds, or a date."""
    if retry_after is None:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def _text_of(response: httpx.Response) -> str:
    """The beginning of an answer. All of a small one is read, so that its connection can be used again."""
    import httpx

    read = bytearray()
    with suppress(httpx.HTTPError):  # the status has come: it counts, whatever becomes of the rest
        for chunk in response.iter_bytes():
            read += chunk
            if len(read) > _READ_BYTES:
                break
    return " ".join(read[: 4 * _SHOWN_CHARACTERS].decode(errors="replace").split())[:_SHOWN_CHARACTERS]


def _rows(rows: list[tuple[str, bytes | None, str | None, int]]) -> pa.RecordBatch:
    import pyarrow as pa

    kinds, raws, reasons, records = zip(*rows, strict=True)
    arrays = [pa.array(kinds, pa.string()), pa.array(raws, pa.binary()), pa.array(reasons, pa.string()),
              pa.array(records, pa.int64())]  # fmt: skip
    return pa.RecordBatch.from_arrays(arrays, names=["kind", "raw", "reason", "records"])
