"""Inputs of pipelines as declared: which part of a dataset is read, at which version, and what that is meant to be."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import model_validator

from backcast.errors import InvalidRequest
from backcast.model.document import Document, later
from backcast.model.manifest import Semantics
from backcast.model.pipeline import InputSpec, Relation
from backcast.model.source import LogSource
from backcast.model.time import parse_instant
from backcast.project.values import Label


def input_of(value: object) -> object:
    """A name alone is the short form."""
    return {"dataset": value} if isinstance(value, str) else value


class InputConfig(Document):
    """An input: the part of a dataset that the output window (with warm-up) needs, or all of it."""

    dataset: Label
    window: Literal["output", "all"] = "output"
    version: Annotated[str | None, later(None)] = None
    """A snapshot id of Iceberg, a version of Delta; unset, the newest when the run is planned."""
    as_of: Annotated[str | None, later(None)] = None
    """The version that was the newest then, in the zone of the output."""
    semantics: Annotated[Semantics | None, later(None)] = None

    @model_validator(mode="after")
    def _fits(self) -> InputConfig:
        if self.version is not None and self.as_of is not None:
            raise ValueError("give version or as_of, not both")
        if self.version is not None and not self.version.isdigit():
            raise ValueError(f"version {self.version!r} is neither a snapshot id of Iceberg nor a version of Delta")
        if self.as_of is not None:
            _moment(self.as_of)
        older = self.version is not None or self.as_of is not None
        if self.semantics is Semantics.CURRENT and older:
            raise ValueError("semantics current is the newest version: leave version and as_of out")
        if self.semantics in (Semantics.AS_RECORDED, Semantics.AS_DECIDED) and not older:
            raise ValueError(f"semantics {self.semantics} is an older version: say which with version or as_of")
        return self

    def spec(self, name: str, dataset: Relation | LogSource, zone: str) -> InputSpec:
        return InputSpec(
            name=name,
            dataset=dataset,
            windowed=self.window == "output",
            version=self.version,
            as_of=None if self.as_of is None else parse_instant(self.as_of, zone),
            semantics=self.semantics,
        )


def _moment(text: str) -> None:
    try:
        parse_instant(text, "UTC")
    except InvalidRequest as error:
        raise ValueError(f"{error.message}: {error.hint}") from error
