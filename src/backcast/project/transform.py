"""What a transform is written with: the decorator, its inputs, its context. Loads neither Spark nor pydantic."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from backcast.model.states import Execution
from backcast.project.problems import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.model.time import Interval

__all__ = ["Context", "Execution", "Inputs", "TransformFunction", "transform", "transform_label"]

TransformFunction = Callable[["Inputs", "Context"], "DataFrame"]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_LABEL = "__backcast_transform__"


@dataclass(frozen=True, slots=True)
class TransformLabel:
    """What the decorator says about a function."""

    name: str
    version: str


def transform(*, name: str, version: str) -> Callable[[_Function], _Function]:
    """Mark a function of (inputs, context) as a transform. It is returned unchanged, so tests can call it.

    The version must be the one that `backcast.yaml` declares: a changed transform is a new version in both places.
    """
    given: dict[str, object] = {"name": name, "version": version}
    for what, text in given.items():
        if not isinstance(text, str) or not text.strip():
            raise TypeError(f"@backcast.transform needs a {what}, a text such as {what}='...'; got {text!r}")

    def mark(function: _Function) -> _Function:
        if not callable(function):
            raise TypeError(f"@backcast.transform marks a function, got {type(function).__name__}")
        setattr(function, _LABEL, TransformLabel(name, version))
        return function

    return mark


def transform_label(function: object) -> TransformLabel | None:
    """What the decorator said about the function; None when it was not used."""
    return getattr(function, _LABEL, None)


class NoSuchInput(KeyError):
    """A transform asked for an input that its pipeline does not declare."""

    def __str__(self) -> str:
        return str(self.args[0])


class Inputs(Mapping[str, "DataFrame"]):
    """The pipeline's inputs by the names that `backcast.yaml` gives them, each limited to what the job may read."""

    def __init__(self, frames: Mapping[str, DataFrame]) -> None:
        self._frames = dict(frames)

    def __getitem__(self, name: str) -> DataFrame:
        try:
            return self._frames[name]
        except KeyError:
            text = f"the pipeline has no input called {name!r}{suggestion(str(name), self._frames)}"
            raise NoSuchInput(text) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def __repr__(self) -> str:
        return f"Inputs({', '.join(self._frames)})"


@dataclass(frozen=True, slots=True)
class Context:
    """What a transform may know about the run it works for. The same in every repetition of a chunk."""

    run_id: str
    execution: Execution
    """Why it runs: a transform with side effects must look at this."""
    window: Interval
    """The output of this job, half-open, in UTC. Rows outside it are cut as warm-up."""
    started_at: datetime
    """The run's own instant."""
    spark: SparkSession

    def clock(self) -> datetime:
        """The run's own instant: use it where `datetime.now()` or `current_timestamp()` would differ every time."""
        return self.started_at

    def derive_id(self, *parts: object) -> str:
        """32 hexadecimal digits that follow from the parts alone: use it where `uuid4()` would differ every time.

        Takes texts, numbers, booleans, None, dates, times and UUIDs; 1 and "1" give different ids. For a column write
        `sha2(concat_ws('|', tenant, order_id), 256)` instead.
        """
        if not parts:
            raise TypeError("derive_id needs at least one part")
        text = json.dumps([_tagged(part) for part in parts], ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def _tagged(part: object) -> list[str]:
    """Type and value as text, the same in every process."""
    match part:
        case None | bool():
            return ["constant", str(part)]
        case str():
            return ["text", part]
        case int():
            return ["integer", str(part)]
        case float() | Decimal() | UUID():
            return [type(part).__name__.lower(), str(part)]
        case datetime() if part.tzinfo is not None:
            return ["instant", part.astimezone(UTC).isoformat()]
        case datetime() | date():
            return ["wall", part.isoformat()]
        case _:
            raise TypeError(f"derive_id takes texts, numbers, dates and the like, got {type(part).__name__}")
