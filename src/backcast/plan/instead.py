"""What to do instead: cheaper answers than changing history, named where what was declared shows that there is one."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from backcast.model.finding import Finding, note
from backcast.model.pipeline import PipelineSpec
from backcast.model.request import Kind, Request
from backcast.model.source import LogSource
from backcast.model.words import many

_FEW = 100
"""Records that a person can still write and read through."""


def instead_findings(request: Request, spec: PipelineSpec, rows: int) -> list[Finding]:
    """Notes only: who asks for history to change may have reasons that nobody declared. `rows` are in scope now."""
    return [*_correct(request, spec), *_refresh(spec), *_accept(request, spec, rows)]


def _correct(request: Request, spec: PipelineSpec) -> Iterator[Finding]:
    topics = [each.dataset.topic for each in spec.inputs if isinstance(each.dataset, LogSource)]
    keys = _keys(request, spec)
    number = keys if request.affected is None else request.affected
    if not topics or number is None or number > _FEW or request.kind is Kind.BOOTSTRAP:
        return
    what = many(number, "row") if keys is None else many(keys, "key")
    yield note(
        "instead.correction-records",
        f"no more than {what} of {spec.output.name} must change, and its stream reads topic {topics[0]}",
        f"correction records sent to {topics[0]} would mend them without a replay, where the stream takes the newest"
        " record of a key",
    )


def _refresh(spec: PipelineSpec) -> Iterator[Finding]:
    if spec.output.refresh is not None:
        yield note(
            "instead.refresh",
            f"{spec.output.name} is declared as derived from tables that are right",
            f"refresh it instead: {spec.output.refresh}",
        )


def _accept(request: Request, spec: PipelineSpec, rows: int) -> Iterator[Finding]:
    """Only against rows that are there: of an empty scope every row is new."""
    tolerance = spec.output.tolerance
    if tolerance is None or request.affected is None or not rows or request.affected > tolerance * rows:
        return
    yield note(
        "instead.accept",
        f"the error is {many(request.affected, 'row')} of {rows:,} in scope, and the declared tolerance"
        f" {tolerance * 100:g}%",
        "mend the code for what comes, leave these as they are and write down why",
    )


def _keys(request: Request, spec: PipelineSpec) -> int | None:
    """How many keys the request names; None when it does not say which."""
    asked = {clause.column: len(clause.values) for clause in request.where}
    if not spec.output.key or not asked.keys() >= set(spec.output.key):
        return None
    return prod(asked[name] for name in spec.output.key)
