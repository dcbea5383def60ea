"""Why a query failed, judged from the chain of exceptions alone. Pure: it asks neither Spark nor the disk.

Decided by class, error condition, SQLSTATE, and where in Spark an exception was thrown. What an exception says is only
shown to people: the value of a row can be in it.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from penstock.facts.failure import Kind, RecordAt, RefusedColumns
from penstock.facts.raised import columns_in, record_in, refused_columns
from penstock.facts.thrown import Thrown
from penstock.facts.worker_traceback import IN_WORKER, with_workers
from penstock.user_code import is_users

Service = Literal["kafka", "database", "files", "network"]
_WRAPPERS = ("STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR")
_REFUSED_IN_PYTHON = "penstock.sources.living.found.NewColumns"
_LOST_EXECUTOR = re.compile(
    r"Job aborted due to stage failure: Task \S+ in stage \S+ failed \d+ times, most recent failure:"
    r" Lost task \S+ in stage \S+ \(TID \d+\) \(\S+ executor [^)\s]+\): ExecutorLostFailure \("
)
"""How Spark's scheduler begins the message about an executor that it lost. No value of a row comes before this."""
_DISK_FULL = ("No space left on device", "Disk quota exceeded", "NoSpace")
_LOG_CLASSES = ("HDFSMetadataLog", "OffsetSeqLog", "CommitLog", "CompactibleFileStreamLog", "OffsetSeq", "OffsetSeq$")
_LOG_UNREAD = "Failed to read log file "
_STATE_CONDITIONS = (
    "STATE_STORE_", "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", "STATEFUL_PROCESSOR_", "ILLEGAL_STATE_",
)  # fmt: skip
_CHECKPOINT_CONDITIONS = (
    "CANNOT_LOAD_STATE_STORE", "INVALID_LOG_VERSION", "MALFORMED_LOG_FILE", "BATCH_METADATA_NOT_FOUND", "STDS_",
    "CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED", "CANNOT_LOAD_CHECKPOINT_FILE_MANAGER",
    "CONCURRENT_STREAM_LOG_UPDATE",
)  # fmt: skip
_LOSS_CONDITIONS = (
    "KAFKA_DATA_LOSS", "LOST_TOPIC_PARTITIONS_IN_END_OFFSET", "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION",
    "MISMATCHED_TOPIC_PARTITIONS", "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET",
)  # fmt: skip
_NOT_RETRIED = "org.apache.spark.sql.execution.streaming.continuous.ContinuousTaskRetryException"
_KAFKA = "org.apache.kafka.common.errors."
_KAFKA_STAYS = tuple(
    f"{_KAFKA}{name}Exception"
    for name in ("CorruptRecord", "UnknownTopicOrPartition", "UnknownTopicId", "OffsetOutOfRange")
)
_NETWORK = (
    "java.net.ConnectException", "java.net.NoRouteToHostException", "java.net.UnknownHostException",
    "java.net.SocketTimeoutException", "java.net.SocketException", "java.nio.channels.UnresolvedAddressException",
    "java.net.http.HttpTimeoutException", "org.apache.hadoop.ipc.RetriableException",
    "org.apache.hadoop.ipc.StandbyException", "org.apache.hadoop.fs.s3a.AWSClientIOException",
    "org.apache.hadoop.fs.s3a.AWSServiceThrottledException", "org.apache.hadoop.fs.s3a.AWSStatus500Exception",
    "software.amazon.awssdk.core.exception.ApiCallTimeoutException", "builtins.ConnectionError",
    "builtins.TimeoutError", "socket.gaierror", "httpx.TransportError", "httpcore.NetworkError",
    "urllib.error.URLError", "requests.exceptions.ConnectionError",
)  # fmt: skip
_DATABASE_AWAY = ("08", "57P", "53300", "40001", "40P01", "25006")
"""SQLSTATEs: no connection, shutting down or starting, too many clients, lost to another, read-only for now."""
_MEMORY_CONDITIONS = ("UNABLE_TO_ACQUIRE_MEMORY", "AGGREGATE_OUT_OF_MEMORY", "SPILL_OUT_OF_MEMORY",
                      "POINTER_ARRAY_OUT_OF_MEMORY", "NOT_ENOUGH_MEMORY_TO_BUILD_BROADCAST_TABLE")  # fmt: skip


@dataclass(frozen=True)
class Cause:
    """What kind of failure it was, and what is known about it."""

    kind: Kind
    link: Thrown
    """The exception that decided it."""
    root: Thrown
    """The innermost exception that says something."""
    paths: tuple[str, ...] = ()
    record: RecordAt | None = None
    columns: RefusedColumns | None = None
    line: tuple[str, int] | None = None
    """The file and line of the user's code."""
    service: Service | None = None
    """What is away."""
    reads: bool | None = None
    """Was something read, and not written? None where the exceptions do not show it."""
    lost: str = ""
    """The topic, the partition and the range that is gone."""
    sites: tuple[str, ...] = field(default=(), compare=False)


Judge = Callable[[tuple[Thrown, ...]], Cause | None]


def classify(chain: tuple[Thrown, ...]) -> Cause:
    """What stopped a query, from the exception that Spark or Python reports and its causes, outermost first."""
    links = with_workers(tuple(one for one in chain if one.condition not in _WRAPPERS) or chain)
    judges: tuple[Judge, ...] = (
        _ours, _memory, _disk, _worker, _user_code, _away, _data_loss, _checkpoint, _file, _python_worker,
    )  # fmt: skip
    return next((found for judge in judges if (found := judge(links))), None) or _other(links)


def root_of(links: tuple[Thrown, ...]) -> Thrown:
    """The innermost exception that says something."""
    return next((one for one in reversed(links) if says_something(one)), links[-1])


def says_something(link: Thrown) -> bool:
    return link.message.strip().rstrip(".") not in ("", "null", "None", "assertion failed")


def _ours(links: tuple[Thrown, ...]) -> Cause | None:
    if record := record_in(links):
        return Cause("bad_record", links[-1], root_of(links), record=record)
    columns = columns_in(links)
    for link in links:
        if columns is None and link.is_a(_REFUSED_IN_PYTHON):
            columns = refused_columns(link.parameters)
    if columns is not None:
        return Cause("new_columns", links[-1], root_of(links), columns=columns)
    return None


def _memory(links: tuple[Thrown, ...]) -> Cause | None:
    for link in links:
        is_error = link.is_a("java.lang.OutOfMemoryError", "builtins.MemoryError") or link.sqlstate == "53200"
        if is_error or link.condition in _MEMORY_CONDITIONS or link.condition.endswith("_PROVIDER_OUT_OF_MEMORY"):
            return Cause("out_of_memory", link, root_of(links), line=_users_line(link))
    return None


def _disk(links: tuple[Thrown, ...]) -> Cause | None:
    for link in links:
        own = link.message if link.classes[0] == "java.io.IOException" and _thrown_by_java(link) else ""
        full = own in _DISK_FULL or (link.parameters.get("reason") in _DISK_FULL and not link.condition)
        if full or link.errno in (errno.ENOSPC, errno.EDQUOT) or link.sqlstate == "53100":
            file = link.parameters.get("file", "")
            return Cause("disk_full", link, root_of(links), (file,) if file else ())
        if link.is_a("org.apache.hadoop.util.DiskChecker$DiskOutOfSpaceException"):
            return Cause("disk_full", link, root_of(links))
    return None


def _worker(links: tuple[Thrown, ...]) -> Cause | None:
    for link, behind in zip(links, (*links[1:], None), strict=True):
        lost = link.is_a("org.apache.spark.shuffle.FetchFailedException", "org.apache.spark.ExecutorDeadException")
        in_runner = any(".python." in frame for frame in link.frames[:4]) and link.name == "SparkException"
        cut_off = behind is not None and behind.is_a("java.io.EOFException", "java.net.SocketException")
        of_scheduler = _thrown_in(link, "DAGScheduler") and behind is None
        if lost or (in_runner and cut_off) or (of_scheduler and _LOST_EXECUTOR.match(link.message)):
            return Cause("worker_died", link, root_of(links))
    return None


def _user_code(links: tuple[Thrown, ...]) -> Cause | None:
    for link in reversed(links):
        if line := _users_line(link):
            return Cause("user_code", link, link, line=line)
    return None


def _python_worker(links: tuple[Thrown, ...]) -> Cause | None:
    """A function failed, and the stack shows no line of the user's: it gave back what Spark cannot take."""
    if any(link.is_a(IN_WORKER) or link.condition == "FAILED_EXECUTE_UDF" for link in links):
        return Cause("user_code", links[-1], root_of(links))
    return None


def _away(links: tuple[Thrown, ...]) -> Cause | None:
    for link in links:
        if service := _absent(link):
            reads = _reads(links)
            kind: Kind = "sink_away" if reads is False else "source_away"
            return Cause(kind, link, root_of(links), _paths(links), service=service, reads=reads)
    return None


def _absent(link: Thrown) -> Service | None:
    if link.is_a(f"{_KAFKA}RetriableException") and not link.is_a(*_KAFKA_STAYS):
        return "kafka"
    if not link.condition and link.sqlstate.startswith(_DATABASE_AWAY):
        return "database"
    if link.is_a("psycopg.OperationalError") and not link.sqlstate:
        return "database"
    return "network" if link.is_a(*_NETWORK) else None


def _reads(links: tuple[Thrown, ...]) -> bool | None:
    """As far as the stacks show: is it Spark's Kafka consumer, or a reader of files?"""
    names = [frame.rpartition(".")[2] for link in links for frame in link.frames if "kafka010" in frame]
    if any(word in name for name in names for word in ("Consumer", "OffsetReader", "MicroBatchStream", "KafkaBatch")):
        return True
    if any(word in name for name in names for word in ("Producer", "Writer", "KafkaSink")):
        return False
    return True if any(link.condition.startswith("FAILED_READ_FILE") for link in links) else None


def _data_loss(links: tuple[Thrown, ...]) -> Cause | None:
    for link in links:
        if link.condition.startswith(_LOSS_CONDITIONS):
            return Cause("data_loss", link, link, service="kafka", reads=True, lost=_lost(link))
        if link.is_a("org.apache.kafka.clients.consumer.OffsetOutOfRangeException"):
            return Cause("data_loss", link, link, service="kafka", reads=True)
    return None


def _lost(link: Thrown) -> str:
    told = link.parameters
    place = told.get("topicPartition") or told.get("partitions") or ""
    first, last = told.get("startOffset") or told.get("offset") or told.get("prevOffset"), told.get("endOffset")
    if first is None:
        return place
    return f"{place} from offset {first}" + (f" to {last}" if last else "")


def _checkpoint(links: tuple[Thrown, ...]) -> Cause | None:
    for link in links:
        if link.condition.startswith((*_STATE_CONDITIONS, *_CHECKPOINT_CONDITIONS)):
            return Cause("checkpoint", link, root_of(links), _checkpoint_paths(links))
        if _thrown_in(link, *_LOG_CLASSES) or (link.name == "AssertionError" and _is_in(link, *_LOG_CLASSES)):
            return Cause("checkpoint", link, root_of(links), _checkpoint_paths(links))
    return None


def _checkpoint_paths(links: tuple[Thrown, ...]) -> tuple[str, ...]:
    paths = [link.parameters.get(key, "") for link in links for key in ("fileToRead", "path", "fileName", "batchFile")]
    for link, behind in pairwise(links):
        if _thrown_in(link, "HDFSMetadataLog") and link.message.startswith(_LOG_UNREAD):
            # Spark's own sentence: the path, and after it what the next exception says.
            paths.append(link.message.removeprefix(_LOG_UNREAD).removesuffix(f". {behind.message}"))
    return tuple(dict.fromkeys(filter(None, paths)))


def _file(links: tuple[Thrown, ...]) -> Cause | None:
    for link in links:
        if not link.condition.startswith("FAILED_READ_FILE"):
            continue
        if link.condition.endswith(".FILE_NOT_EXIST"):
            return Cause("missing_file", link, root_of(links), _paths(links), reads=True)
        if link.condition.endswith(".PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
            return Cause("new_columns", link, link, _paths(links), columns=_mismatch(link))
        return Cause("damaged_file", link, root_of(links), _paths(links), reads=True)
    gone = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException", "builtins.FileNotFoundError")
    for link in links:
        if link.is_a(*gone):
            return Cause("missing_file", link, root_of(links), _paths(links))
        if link.is_a("org.apache.hadoop.fs.ChecksumException"):
            return Cause("damaged_file", link, root_of(links), _paths(links))
    return None


def _mismatch(link: Thrown) -> RefusedColumns:
    told = link.parameters
    types = (told.get("actualType", ""), told.get("expectedType", ""))
    return RefusedColumns("", 0, (told.get("column", "").strip("[]"),), told.get("path", ""), types)


def _other(links: tuple[Thrown, ...]) -> Cause:
    # A task of Continuous Processing that is run again reports only that it must not be.
    root = root_of(links)
    link = next((one for one in links if one.is_a(_NOT_RETRIED)), root)
    return Cause("other", link, root, _paths(links), sites=tuple(_sites(links)))


def was_not_retried(cause: Cause) -> bool:
    """Does Spark report only that a task failed before, and not why?"""
    return cause.link.is_a(_NOT_RETRIED)


def _sites(links: tuple[Thrown, ...]) -> Iterator[str]:
    """The classes that threw, innermost first, without those of Scala and Java."""
    for link in reversed(links):
        for frame in link.frames:
            if not frame.startswith(("scala.", "java.", "jdk.")):
                yield frame.partition("$")[0]
                break


def _paths(links: tuple[Thrown, ...]) -> tuple[str, ...]:
    found = [link.parameters.get("path", "") for link in links if link.condition.startswith("FAILED_READ_FILE")]
    found += [link.parameters.get("file", "") for link in links if not link.condition and not link.python]
    return tuple(dict.fromkeys(filter(None, found)))[:1]


def _users_line(link: Thrown) -> tuple[str, int] | None:
    """The last line of the user's own code that an exception of Python passed through."""
    return next((line for line in reversed(link.lines) if is_users(line[0])), None)


def _thrown_in(link: Thrown, *names: str) -> bool:
    return bool(link.frames) and _name(link.frames[0]) in names


def _is_in(link: Thrown, *names: str) -> bool:
    return any(_name(frame) in names for frame in link.frames)


def _name(frame: str) -> str:
    return frame.rpartition(".")[2] if frame.startswith("org.apache.spark.") else ""


def _thrown_by_java(link: Thrown) -> bool:
    """Did Java itself throw it, at a call of the operating system?"""
    return bool(link.frames) and link.frames[0].startswith(("java.io.", "java.nio.", "sun.nio."))
