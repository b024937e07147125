"""What publish and undo work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from backcast.model.manifest import Manifest
from backcast.model.report import OnProgress
from backcast.model.run import Run
from backcast.model.scope import EVERYTHING, Predicate
from backcast.model.table import PublishMode
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

    @property
    def mode(self) -> PublishMode:
        return self.manifest.settings.publish_mode

    @property
    def scope(self) -> Predicate:
        """Rows that the change must not meet unawares: the scope's; of a merge all, unless the key tells the scope."""
        predicate = self.manifest.scope.predicate
        told = {clause.column for clause in predicate.clauses} <= set(self.manifest.settings.key)
        return predicate if self.mode is not PublishMode.MERGE or told else EVERYTHING

    @property
    def reach(self) -> Predicate:
        """Where files of the change can lie: a scope that cuts files, and a merge, write rows beside it anew."""
        return reach_of(self.manifest)


def reach_of(manifest: Manifest) -> Predicate:
    """The same for any run."""
    merges = manifest.settings.publish_mode is PublishMode.MERGE
    return EVERYTHING if manifest.scope.exact or merges else manifest.scope.predicate
