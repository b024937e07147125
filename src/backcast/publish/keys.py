"""Keys of live rows against those of a run: the same key on both sides would be a double."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import NotValidated, ScopeChanged
from backcast.model.manifest import LivePolicy
from backcast.model.masked import hides
from backcast.model.table import Movement, NetChange, PublishMode
from backcast.publish.decide import merge_refusal
from backcast.publish.job import PublishJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RunKeys:
    """Keys of restated rows, or those that a merge changed; these are computed once, however often files arrive."""

    def __init__(self, job: PublishJob, net: NetChange) -> None:
        self._job, self._net = job, net
        self._merged: DataFrame | None = None

    def refuse_shared(self, movement: Movement, live: frozenset[str], policy: LivePolicy) -> None:
        """Raises when one of these live files has one of the keys."""
        job, key = self._job, self._job.manifest.settings.key
        arrived = job.target.read_files(movement.head, live, job.scope)
        if job.mode is PublishMode.MERGE:
            shared = self._shown(job.engine.shared_keys(arrived, self._changed(), key))
            if shared:
                raise merge_refusal(movement, policy, job.run.run_id, shared)
            return
        shared = self._shown(job.engine.shared_keys(arrived, job.target.read(self._net.staged, job.scope), key))
        if shared:
            raise ScopeChanged(
                f"live rows arrived with keys that the run restates, for example {', '.join(shared[:3])}",
                hint=f"backcast cancel {job.run.run_id}, then plan again so that they are restated too",
            )

    def _shown(self, keys: list[str]) -> list[str]:
        """The message goes on record and to whoever publishes: without values of a masked column."""
        settings = self._job.manifest.settings
        return ["***"] * len(keys) if hides(settings.masked, *settings.key) else keys

    def release(self) -> None:
        if self._merged is not None:
            self._merged.unpersist()

    def _changed(self) -> DataFrame:
        """Keys that the merge added, replaced or removed: a row that it replaced always has a greater version now."""
        if self._merged is None:
            job, net, settings = self._job, self._net, self._job.manifest.settings
            if settings.version is None:
                raise NotValidated("the plan of this merge does not tell its version column", hint="plan again")
            before = job.target.read_files(net.base, frozenset(file.path for file in net.removed), job.scope)
            after = job.target.read_files(net.staged, frozenset(file.path for file in net.added), job.scope)
            self._merged = job.engine.changed_keys(before, after, settings.key, settings.version).persist()
        return self._merged
