"""Appends to one table publish one after the other, so that what one has appended no other appends once more.

Nothing is removed by an append, so no conflict on the table tells two equal ones apart: the ledger has to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backcast.errors import Refused
from backcast.model.live import stream_lease
from backcast.model.request import Kind
from backcast.model.states import RunState
from backcast.model.table import PublishMode
from backcast.plan.bootstrap import bootstrap_findings
from backcast.plan.log_shape import repeat_findings
from backcast.run.lease import HeldLease, acquire

if TYPE_CHECKING:
    from backcast.model.manifest import Manifest
    from backcast.model.run import Run
    from backcast.ports import RunReader
    from backcast.world import World

_ALL = 100_000
_WAIT_SECONDS = 120.0
_MAY_BE_THERE = (RunState.PUBLISHED, RunState.PUBLISHING, RunState.SUPERSEDED)
"""A publish that ended in the middle may have landed; of a run that others replaced in part, the rest is there."""


def landed_runs(reader: RunReader, table: str) -> tuple[tuple[Run, Manifest], ...]:
    """Runs whose rows are in the table, or may be; an undone one is not there."""
    runs = (run for run in reader.runs(limit=_ALL) if run.table == table and run.state in _MAY_BE_THERE)
    return tuple((run, reader.manifest(run.run_id)) for run in runs)


def added_runs(reader: RunReader, table: str) -> tuple[tuple[Run, Manifest], ...]:
    """Runs whose rows were appended to the table or merged into it, or may have been; an undone one is not there."""
    found = landed_runs(reader, table)
    return tuple((run, each) for run, each in found if each.settings.publish_mode is not PublishMode.REPLACE)


def appended_runs(reader: RunReader, table: str) -> tuple[tuple[Run, Manifest], ...]:
    """Runs whose rows were appended to the table, or may have been; an undone one is not among them."""
    found = added_runs(reader, table)
    return tuple((run, each) for run, each in found if each.settings.publish_mode is PublishMode.APPEND)


def _refuse_full(world: World, run: Run, manifest: Manifest) -> None:
    """A table that was empty when a bootstrap was planned may have got rows since, or may get some right now."""
    target, spec = world.target(run.dataset), world.pipeline(manifest.pipeline)
    for each in bootstrap_findings(manifest.request, spec, target.facts(), target):
        raise Refused(each.reason, hint=each.remedy)
    for stream in map(world.stream, world.streams() if manifest.request.kind is Kind.BOOTSTRAP else ()):
        held = world.reader().holder(stream_lease(stream.name))
        if stream.dataset.table == run.table and held is not None and world.alive(held.holder):
            raise Refused(
                f"stream {stream.name} runs, and may be about to write what the run has read to {run.table}",
                hint=f"backcast stream stop {stream.name}, then backcast publish {run.run_id}",
            )


@contextmanager
def only_append(world: World, run: Run, manifest: Manifest) -> Iterator[HeldLease]:
    """As long as the lease holds no other run is appended to the table: to be checked before the commit.

    Raises Refused when some of the same offsets were since the plan, which could not tell; what it told was accepted.
    """
    leases = world.store().leases
    with acquire(leases, f"append:{run.table}", world.holder(), world.clock, world.ended, _WAIT_SECONDS) as held:
        others = [each for each in appended_runs(world.reader(), run.table) if each[0].run_id != run.run_id]
        told = {each.reason for each in manifest.findings}
        for each in repeat_findings(manifest.request, manifest.code, manifest.inputs, others):
            if each.reason not in told:
                hint = f"backcast cancel {run.run_id}, and plan what is still missing"
                raise Refused(f"{each.reason}, since this one was planned", hint=hint)
        if run.state is RunState.ACCEPTED:
            _refuse_full(world, run, manifest)
        yield held
