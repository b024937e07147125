"""The one place that turns errors of the JVM, and of the gateway to it, into ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from backcast.errors import BackcastError, Refused, SparkFailed, Unavailable, UnknownName

NOT_LANDED = frozenset({"CommitFailedException", "ValidationException"})
"""Iceberg raises these only when the commit certainly did not land."""

_UNKNOWN_NAMES = frozenset(
    {"NoSuchTableException", "NoSuchNamespaceException", "NoSuchIcebergTableException", "CatalogNotFoundException"}
)
_UNAVAILABLE = frozenset(
    {
        "AccessDeniedException",
        "ConnectException",
        "ForbiddenException",
        "NotAuthorizedException",
        "NotFoundException",
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


def find_cause(error: BaseException, kinds: frozenset[str]) -> Cause | None:
    """The innermost Java exception of one of these classes."""
    return next((cause for cause in reversed(causes(error)) if cause.kind in kinds), None)


def translate(error: BaseException, doing: str, **attributes: Any) -> BackcastError | None:
    """Our error for one that came through the gateway; None for an error that did not."""
    if isinstance(error, BackcastError) or not is_jvm_error(error):
        return None
    chain = causes(error)
    if not chain:
        return SparkFailed(
            f"Spark's JVM went away while {doing}: {_first_line(str(error)) or type(error).__name__}",
            hint="run the same command again; it continues where it stopped",
            **attributes,
        )
    known = {cause.kind: cause for cause in chain}
    root = chain[-1]
    for kind, cause in known.items():
        if kind in _UNKNOWN_NAMES:
            return UnknownName(f"{doing}: {cause.message}", hint="check the table's name and its catalog in backcast.yaml", **attributes)
    if "AnalysisException" in known and "TABLE_OR_VIEW_NOT_FOUND" in known["AnalysisException"].message:
        return UnknownName(f"{doing}: {known['AnalysisException'].message}", hint="check the table's name", **attributes)
    for kind, cause in known.items():
        if kind in _UNAVAILABLE or "No space left on device" in cause.message:
            detail = root.message or cause.message
            return Unavailable(f"{doing}: {detail}", hint="see that the catalog and its storage answer: backcast doctor", **attributes)
    if "ValidationException" in known:
        return Refused(f"{doing}: {known['ValidationException'].message}", **attributes)
    return SparkFailed(f"{doing}: {root.kind}: {root.message}", hint="see the run's log for Spark's own words", **attributes)


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
    return text.strip().partition("\n")[0][:500]
