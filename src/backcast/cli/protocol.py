"""What a command and its Spark child say to each other: one JSON object per line, in both directions.

The command writes jobs to the child's standard input and keeps it open: its end tells the child that nobody waits any
more. The child answers each job with any number of `progress` messages and one `result`, `error`, `crash` or `stopped`.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

RunVerb = Literal[
    "run",
    "worker",
    "watch",
    "retry",
    "validate",
    "diff",
    "publish",
    "undo",
    "cancel",
    "quarantine-show",
    "quarantine-retry",
]
"""About one run, which exists."""
LookVerb = Literal["kafka-window", "verify-witness", "check", "gaps", "late", "compare", "doctor"]
StreamVerb = Literal[
    "stream-start",
    "stream-recovery",
    "stream-integrity",
    "stream-recover",
    "stream-lost-windows",
    "stream-replay-slice",
]
CheckpointVerb = Literal["checkpoint-verify", "checkpoint-restore", "checkpoint-fork", "checkpoint-rewind"]
Verb = Literal[
    RunVerb,
    CheckpointVerb,
    StreamVerb,
    LookVerb,
    "plan",
    "gc",
    "archive",
]
VERBS: tuple[str, ...] = get_args(Verb)
COMMITTING: frozenset[str] = frozenset({"publish", "undo", "archive"})
"""After these, a child that died without an answer leaves the outcome unknown."""

DIFF_SAMPLES = 5
"""Rows that a diff shows of each kind of change, unless somebody asks for more."""

MessageType = Literal["progress", "result", "error", "crash", "stopped"]

BUG = "this is a bug in backcast or in user code"


@dataclass(frozen=True, slots=True)
class Job:
    """One verb to perform. `detached`: nobody holds the other end, so its closing means nothing."""

    verb: Verb
    arguments: dict[str, Any]
    project: str
    profile: str | None = None
    detached: bool = False

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def read(line: bytes) -> Job:
        document = json.loads(line)
        if document.get("verb") not in VERBS:
            raise ValueError(f"no verb is called {document.get('verb')!r}")
        return Job(**document)


@dataclass(frozen=True, slots=True)
class Message:
    """One line of the child. `body` is a document, a list of documents, or an error's attributes."""

    type: MessageType
    body: Any = None
    traceback: str = field(default="", repr=False)

    @property
    def is_last(self) -> bool:
        return self.type != "progress"

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def read(line: bytes) -> Message:
        return Message(**json.loads(line))
