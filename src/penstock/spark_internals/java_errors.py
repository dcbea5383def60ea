"""What a call of the JVM raises, and the chain of Java exceptions behind it."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError, Py4JJavaError

from penstock.facts.thrown import Thrown

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

JvmError: type[Exception] = Py4JError
"""Any call that failed."""
JavaError: type[Exception] = Py4JJavaError
"""A call in which Java threw an exception. It is a JvmError too."""
SPARK_IS_GONE = (ConnectionError, JvmError)
"""What a call raises after the JVM has ended."""
_MOST_CAUSES = 40
_MOST_FRAMES = 12


def java_exception(error: BaseException | None) -> Any:
    """The Java exception behind an error of Py4J or of PySpark; None if there is none."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    return _before_conversion(error) or java if isinstance(error, JavaError) else java


def _before_conversion(error: BaseException) -> Any:
    """The exception that PySpark could not convert: it asks Spark for the text of a condition that is not Spark's.

    So it is with Delta's conditions. Then that question fails, and the exception that matters is behind it.
    """
    first, second = getattr(error.__context__, "java_exception", None), getattr(error, "java_exception", None)
    return first if first is not None and _asked(second, "getCondition") == "INTERNAL_ERROR" else None


def java_message(error: BaseException) -> str | None:
    """What Java said, if PySpark has not turned the error into an exception of its own."""
    java = java_exception(error) if isinstance(error, JavaError) else None
    return str(java.getMessage() or java.toString()) if java is not None else None


def thrown_by_query(query: StreamingQuery) -> tuple[Thrown, ...]:
    """What stopped a query: the exception and its causes, outermost first; empty if it did not fail.

    PySpark's own `exception()` leaves out the classes of the causes that it does not know.
    """
    inside: Any = query
    failed = inside._jsq.exception()
    return tuple(_java_chain(failed.get())) if failed.isDefined() else ()


def thrown_by(error: BaseException) -> tuple[Thrown, ...]:
    """A Python exception with its causes, outermost first: those of Python, and behind them those of Java."""
    chain: list[Thrown] = []
    behind: BaseException | None = error
    while behind is not None and len(chain) < _MOST_CAUSES:
        if (java := java_exception(behind)) is not None:
            return (*chain, *_java_chain(java))
        if not type(behind).__module__.startswith(("pyspark.errors", "py4j.")):
            chain.append(_python_link(behind))
        # PySpark raises its own exceptions `from None`, and the Java exception is only in the context.
        behind = behind.__cause__ or behind.__context__
    return tuple(chain) or (_python_link(error),)


def _python_link(error: BaseException) -> Thrown:
    classes = tuple(f"{one.__module__}.{one.__qualname__}" for one in type(error).__mro__[:-1])
    return Thrown(
        classes,
        str(error),
        parameters=getattr(error, "failure_parameters", None) or {},
        sqlstate=getattr(error, "sqlstate", None) or "",
        python=True,
        lines=tuple((one.filename, one.lineno or 1) for one in traceback.extract_tb(error.__traceback__)),
        errno=(error.errno or 0) if isinstance(error, OSError) else 0,
    )


def _java_chain(java: Any) -> Iterator[Thrown]:
    seen = 0
    while java is not None and seen < _MOST_CAUSES:
        yield _java_link(java)
        java, seen = java.getCause(), seen + 1


def _java_link(java: Any) -> Thrown:
    classes, kind = [], java.getClass()
    while kind is not None:
        classes.append(str(kind.getName()))
        kind = kind.getSuperclass()
    frames = tuple(str(frame.getClassName()) for frame in java.getStackTrace()[:_MOST_FRAMES])
    condition = _asked(java, "getCondition")
    parameters = _parameters(java, tuple(classes), condition)
    state = _asked(java, "getSqlState" if condition else "getSQLState")
    fragment = _fragment(java) if condition else ""
    return Thrown(tuple(classes), str(java.getMessage() or ""), condition, parameters, state, frames, fragment=fragment)


def _parameters(java: Any, classes: tuple[str, ...], condition: str) -> Mapping[str, str]:
    """The message parameters of a SparkThrowable; what other exceptions hold besides their message."""
    if condition:
        return {str(key): str(value) for key, value in dict(java.getMessageParameters()).items()}
    if "java.nio.file.FileSystemException" in classes:
        return {"file": _asked(java, "getFile"), "reason": _asked(java, "getReason")}
    if "org.rocksdb.RocksDBException" in classes and (status := java.getStatus()) is not None:
        return {"reason": str(status.getSubCode().name())}
    return {}


def _fragment(java: Any) -> str:
    """The SQL at fault. An error in a DataFrame's own call has another kind of context."""
    for context in java.getQueryContext():
        if str(context.contextType()) == "SQL":
            return str(context.fragment() or "")
    return ""


def _asked(java: Any, method: str) -> str:
    try:
        return str(getattr(java, method)() or "")
    except JvmError:  # this exception has no such method
        return ""
