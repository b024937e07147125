"""The one place that turns errors of the JVM, and of the gateway to it, into ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from backcast.errors import BackcastError, Refused, SparkFailed, Unavailable, UnknownName
from backcast.model.masking import without_secrets

NOT_LANDED = frozenset({"CommitFailedException", "ValidationException"})
"""Iceberg raises these only when the commit certainly did not land."""

_UNKNOWN_NAMES = frozenset(
    {"NoSuchTableException", "NoSuchNamespaceException", "NoSuchIcebergTableException", "CatalogNotFoundException"}
)
_UNKNOWN_WORDS = ("[TABLE_OR_VIEW_NOT_FOUND]", "[REQUIRES_SINGLE_PART_NAMESPACE]", "[SCHEMA_NOT_FOUND]")
_UNAVAILABLE = frozenset(
    {
        "AccessDeniedException",
        "ConnectException",
        "ForbiddenException",
        "NotAuthorizedException",
        "NotFoundException",
        "PSQLException",
        "RESTException",
        "RuntimeIOException",
        "SQLException",
        "SQLiteException",
        "ServiceFailureException",
        "ServiceUnavailableException",
        "UncheckedIOException",
        "UncheckedSQLException",
        "UnknownHostException",
    }
)
_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class Cause:
    """One link of a Java exception's chain: the class without its package, and its first line."""

    kind: str
    message: str


def is_jvm_error(error: BaseException) -> bool:
    """Whether the error came from the JVM, from pyspark or from the connection to the JVM."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if type(error) is Py4JError and "Trace:" in str(error):
        # The gateway answered that there is no such method: a mistake of ours, not a failure of Spark's.
        return False
    return isinstance(error, Py4JError | PySparkException | ConnectionError | EOFError)


def causes(error: BaseException) -> tuple[Cause, ...]:
    """The Java exceptions behind the error, outermost first. Empty when the JVM did not answer."""
    origin = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found: list[Cause] = []
    try:
        while origin is not None and len(found) < _MAX_DEPTH:
            kind = origin.getClass().getName().rpartition(".")[2].rpartition("$")[2]
            found.append(Cause(kind, _first_line(origin.getMessage() or "")))
            origin = origin.getCause()
    except Exception as lost:
        if not is_jvm_error(lost):
            raise
        return ()
    return tuple(found)


def came_through(error: BaseException, method: str) -> bool:
    """Whether the JVM reported the failure, and it was raised below a method of that name."""
    origin = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        return origin is not None and any(method in frame.getMethodName() for frame in origin.getStackTrace())
    except Exception as lost:
        if not is_jvm_error(lost):
            raise
        return False


def answered(error: BaseException) -> bool:
    """Whether Spark itself reported the failure, as opposed to going away."""
    return bool(causes(error) or _told_by_python(error))


def _told_by_python(error: BaseException) -> tuple[Cause, ...]:
    """What a Python worker raised reaches us as text only: pyspark drops the Java exception that brought it."""
    from pyspark.errors import PySparkException

    if not isinstance(error, PySparkException):
        return ()
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = next((line for line in reversed(lines) if not line.startswith(("at ", "File ", "SQLSTATE", "JVM "))), "")
    return (Cause(type(error).__name__, without_secrets(told)[:500]),)


def find_cause(error: BaseException, kinds: frozenset[str]) -> Cause | None:
    """The innermost Java exception of one of these classes."""
    return next((cause for cause in reversed(causes(error)) if cause.kind in kinds), None)


def translate(error: BaseException, doing: str, **attributes: Any) -> BackcastError | None:
    """Our error for one that came through the gateway; None for an error that did not."""
    if isinstance(error, BackcastError) or not is_jvm_error(error):
        return None
    chain = causes(error) or _told_by_python(error)
    if not chain:
        return SparkFailed(
            f"Spark's JVM went away while {doing}: {_first_line(str(error)) or type(error).__name__}",
            hint="run the same command again; it continues where it stopped",
            **attributes,
        )
    return _ours(chain, doing, attributes)


def _ours(chain: tuple[Cause, ...], doing: str, attributes: dict[str, Any]) -> BackcastError:
    root = chain[-1]
    for cause in chain:
        if cause.kind in _UNKNOWN_NAMES or any(word in cause.message for word in _UNKNOWN_WORDS):
            hint = "check the table's name and its catalog in backcast.yaml"
            return UnknownName(f"{doing}: {cause.message}", hint=hint, **attributes)
    for cause in chain:
        if cause.kind in _UNAVAILABLE or "No space left on device" in cause.message:
            hint = "see that the catalog and its storage answer: backcast doctor"
            return Unavailable(f"{doing}: {root.message or cause.message}", hint=hint, **attributes)
    for cause in chain:
        if cause.kind == "ValidationException":
            return Refused(f"{doing}: {cause.message}", **attributes)
    hint = "see the run's log for Spark's own words"
    return SparkFailed(f"{doing}: {root.kind}: {root.message}", hint=hint, **attributes)


@contextmanager
def jvm_errors(doing: str, **attributes: Any) -> Iterator[None]:
    """Everything inside that fails in the JVM is raised as one of our errors; other errors pass as they are."""
    try:
        yield
    except Exception as error:
        translated = translate(error, doing, **attributes)
        if translated is None:
            raise
        raise translated from error


def _first_line(text: str) -> str:
    """What happened in one line: the first, or of a Python traceback the last. Iceberg repeats a catalog's address."""
    lines = text.strip().splitlines() or [""]
    return without_secrets(lines[-1] if lines[0].startswith("Traceback") else lines[0])[:500]
