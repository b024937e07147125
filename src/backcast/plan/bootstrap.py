"""A bootstrap: all that a topic ever held goes into an empty table, and a stream takes over where that ends."""

from __future__ import annotations

from collections.abc import Iterable

from backcast.errors import InvalidRequest
from backcast.model.finding import Finding, block, warn
from backcast.model.manifest import InputPin
from backcast.model.pipeline import PipelineSpec
from backcast.model.request import Kind, Request
from backcast.model.scope import EVERYTHING
from backcast.model.source import LogSource
from backcast.model.table import PublishMode, TableFacts
from backcast.model.words import many
from backcast.ports import Target

EARLIEST = "earliest"
_NAMED = 3


def bootstrapped(request: Request, spec: PipelineSpec) -> Request:
    """The request, from the earliest record on when it says nothing else. Raises InvalidRequest without a position."""
    if not _bootstraps(request, spec):
        return request
    if spec.settings.publish_mode is PublishMode.REPLACE:
        raise InvalidRequest(
            "a bootstrap hands over to a stream at exact offsets, and `publish: {mode: replace}` knows windows of time",
            hint="use mode append or merge for it, or another --kind",
        )
    if request.start or request.dates or request.record_time or request.checkpoint:
        raise InvalidRequest(
            "a bootstrap reads a topic from its first record on", hint="leave the window out, or give --offsets"
        )
    return request if request.offsets else request.model_copy(update={"offsets": EARLIEST})


def bootstrap_findings(request: Request, spec: PipelineSpec, facts: TableFacts, target: Target) -> list[Finding]:
    """Into a table that has rows already, some of the same records may have come on another way."""
    if not _bootstraps(request, spec) or facts.version is None:
        return []
    there = target.files(facts.version, EVERYTHING).rows
    if not there:
        return []
    return [
        block(
            "bootstrap.not-empty",
            f"{facts.identity.name} has {many(there, 'row')} already: a stream may have written what would come again",
            "bootstrap an empty table; to fill a gap use --kind backfill",
        )
    ]


def cut_findings(request: Request, inputs: Iterable[InputPin]) -> list[Finding]:
    """History that begins where retention has left it."""
    if request.kind is not Kind.BOOTSTRAP or request.offsets != EARLIEST:
        return []
    logs = (pin.log for pin in inputs if pin.log is not None)
    starts = [f"{each.partition}={each.start}" for log in logs for each in log.partitions if each.start]
    if not starts:
        return []
    more = f" and {len(starts) - _NAMED} more" if len(starts) > _NAMED else ""
    return [
        warn(
            "bootstrap.cut",
            f"the topic no longer begins at its first record, but at {', '.join(starts[:_NAMED])}{more}",
            "nothing to do when that is all there is; else declare an archive that has the rest",
        )
    ]


def _bootstraps(request: Request, spec: PipelineSpec) -> bool:
    return request.kind is Kind.BOOTSTRAP and any(isinstance(each.dataset, LogSource) for each in spec.inputs)
