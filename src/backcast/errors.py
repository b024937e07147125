"""Every error Backcast raises on purpose.

    BackcastError
    ├── InvalidRequest      exit 2   what was asked cannot be understood; nothing was touched
    │   ├── ConfigError              backcast.yaml: file, line, key, what was expected
    │   └── UnknownName              a run, pipeline, dataset or column that does not exist
    ├── Refused             exit 3   understood, and declined by a check; nothing was touched
    │   ├── PlanRefused              blocking findings
    │   ├── Drifted                  code, config, input or target moved since the plan
    │   ├── NotApproved              people must agree first, or one of them has said no
    │   ├── OverBudget               more rows, time or money than was allowed
    │   ├── NotValidated             publish without an accepted verdict for exactly this stage
    │   ├── NotVerified              evidence that was changed, or whose signature does not fit
    │   ├── UndoRefused              an undo that could double, lose or resurrect rows
    │   └── SessionRefused           a Spark session that cannot be used
    ├── Conflict            exit 4   someone else holds or changed what this needs
    │   ├── ScopeChanged             live rows arrived in the scope since the base
    │   ├── LeaseHeld                another process works on this run or table
    │   └── StateConflict            the run is not in a state that allows this
    ├── Failed              exit 5   stopped half-way; the same command continues
    │   ├── ChunkFailed              a transform raised or wrote rows out of scope
    │   ├── QuarantineFull           more records cannot be used than the run may set aside
    │   ├── SparkFailed              Spark, its JVM or the gateway to it went away
    │   └── Unavailable              store, catalog, disk
    └── OutcomeUnknown      exit 6   a commit may or may not have landed; look before any retry

An error carries a stable `code`, the attributes that explain it and a `hint`: what to do next, if possible a command.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

Retry = Literal["never", "after-change", "again"]


class BackcastError(Exception):
    """Base of all deliberate errors: one sentence, a stable code, a hint, and attributes for machines."""

    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "internal"
    retry: ClassVar[Retry] = "never"

    def __init__(self, message: str, *, hint: str = "", **attributes: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.attributes = attributes

    def as_dict(self) -> dict[str, Any]:
        """The form that `--json` prints."""
        return {
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "retry": self.retry,
            "exit_code": self.exit_code,
            **{key: str(value) for key, value in self.attributes.items()},
        }


class InvalidRequest(BackcastError):
    exit_code = 2
    code = "request.invalid"
    retry: ClassVar[Retry] = "after-change"


class ConfigError(InvalidRequest):
    code = "config.invalid"


class UnknownName(InvalidRequest):
    code = "name.unknown"


class Refused(BackcastError):
    exit_code = 3
    code = "refused"
    retry: ClassVar[Retry] = "after-change"


class PlanRefused(Refused):
    code = "plan.refused"


class Drifted(Refused):
    code = "run.drifted"


class NotApproved(Refused):
    code = "run.not-approved"


class OverBudget(Refused):
    code = "run.over-budget"


class NotVerified(Refused):
    code = "evidence.not-verified"


class NotValidated(Refused):
    code = "publish.not-validated"


class UndoRefused(Refused):
    code = "undo.refused"


class SessionRefused(Refused):
    code = "spark.session-refused"


class Conflict(BackcastError):
    exit_code = 4
    code = "conflict"
    retry: ClassVar[Retry] = "again"


class ScopeChanged(Conflict):
    code = "publish.scope-changed"
    retry: ClassVar[Retry] = "after-change"


class LeaseHeld(Conflict):
    code = "lease.held"


class StateConflict(Conflict):
    code = "run.state"
    retry: ClassVar[Retry] = "after-change"


class Failed(BackcastError):
    exit_code = 5
    code = "failed"
    retry: ClassVar[Retry] = "again"


class ChunkFailed(Failed):
    code = "run.chunk-failed"
    retry: ClassVar[Retry] = "after-change"


class QuarantineFull(Failed):
    code = "run.quarantine-full"
    retry: ClassVar[Retry] = "after-change"


class SparkFailed(Failed):
    code = "spark.failed"


class Unavailable(Failed):
    code = "unavailable"


class OutcomeUnknown(BackcastError):
    exit_code = 6
    code = "outcome.unknown"
    retry: ClassVar[Retry] = "again"


_BY_CODE: dict[str, type[BackcastError]] = {}


def _collect(kind: type[BackcastError]) -> None:
    _BY_CODE[kind.code] = kind
    for child in kind.__subclasses__():
        _collect(child)


_collect(BackcastError)


def from_dict(document: dict[str, Any]) -> BackcastError:
    """The error that `as_dict` wrote, so that it can cross a process boundary."""
    known = {"code", "message", "hint", "retry", "exit_code"}
    kind = _BY_CODE.get(document.get("code", ""), BackcastError)
    extra = {key: value for key, value in document.items() if key not in known}
    return kind(document.get("message", ""), hint=document.get("hint", ""), **extra)
