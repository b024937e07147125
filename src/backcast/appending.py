"""Appends to one table publish one after the other, so that what one has appended no other appends once more.

Nothing is removed by an append, so no conflict on the table tells two equal ones apart: the ledger has to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backcast.errors import Refused
from backcast.model.finding import Severity
from backcast.model.states import RunState
from backcast.model.table import PublishMode
from backcast.plan.log_shape import repeat_findings
from backcast.run.lease import acquire

if TYPE_CHECKING:
    from backcast.model.manifest import Manifest
    from backcast.model.run import Run
    from backcast.ports import RunReader
    from backcast.world import World

_ALL = 100_000
_WAIT_SECONDS = 120.0
_MAY_BE_THERE = (RunState.PUBLISHED, RunState.PUBLISHING)
"""A publish that ended in the middle may have landed."""


def appended_runs(reader: RunReader, dataset: str, table: str) -> tuple[tuple[Run, Manifest], ...]:
    """Runs whose rows were appended to the table, or may have been; an undone one is not among them."""
    runs = (run for run in reader.runs(dataset=dataset, limit=_ALL) if run.state in _MAY_BE_THERE)
    found = ((run, reader.manifest(run.run_id)) for run in runs if run.table == table)
    return tuple((run, each) for run, each in found if each.settings.publish_mode is PublishMode.APPEND)


@contextmanager
def only_append(world: World, run: Run, manifest: Manifest) -> Iterator[None]:
    """As long as this holds no other run is appended to the table. Raises Refused when an equal one was meanwhile."""
    leases = world.store().leases
    with acquire(leases, f"append:{run.table}", world.holder(), world.clock, world.ended, _WAIT_SECONDS) as held:
        appended = appended_runs(world.reader(), run.dataset, run.table)
        others = [(other, each) for other, each in appended if other.run_id != run.run_id]
        equal = repeat_findings(manifest.request, manifest.code, manifest.inputs, others)
        first = next((each for each in equal if each.severity is Severity.BLOCK), None)
        if first is not None:
            raise Refused(f"{first.reason}, since this one was planned", hint=f"backcast cancel {run.run_id}")
        held.check()
        yield
