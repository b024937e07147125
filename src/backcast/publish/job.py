"""What publish and undo work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backcast.model.manifest import Manifest
from backcast.model.report import OnProgress
from backcast.model.run import Run
from backcast.ports import Clock, Engine, Store, Target

ATTEMPTS = 20
"""How often one command decides on a newer head and commits again."""

CheckLease = Callable[[], int]
"""The token of the run's lease, if it is certainly still ours; raises LeaseHeld otherwise."""


@dataclass(frozen=True, slots=True)
class PublishJob:
    """One process publishing or undoing one run, under its lease. `token` fences every change of state."""

    run: Run
    manifest: Manifest
    store: Store
    target: Target
    engine: Engine
    clock: Clock
    check_lease: CheckLease
    on_progress: OnProgress
