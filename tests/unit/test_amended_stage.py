"""A verdict is about one stage: once live rows had it staged again, the old verdict publishes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from backcast.errors import NotValidated
from backcast.model.amendment import Amendment
from backcast.model.manifest import Manifest
from backcast.model.scope import Predicate
from backcast.model.states import RunState
from backcast.model.table import NetChange, Stage, TableFacts
from backcast.model.verdict import Verdict
from backcast.ports import Engine, Store, Target
from backcast.project.clock import SystemClock
from backcast.publish.job import PublishJob
from backcast.publish.step import publish
from backcast.store import open_store
from backcast.testing.lives import accepted_run
from backcast.testing.samples import sample_manifest


class LookedAtFiles(Exception):
    """The verdict is about the stage as it is on record: whether its files are, is the next question."""


@dataclass(frozen=True)
class Table:
    """As it was planned."""

    manifest: Manifest

    def facts(self) -> TableFacts:
        return TableFacts(self.manifest.target.identity, "1", None, None, False, {})

    def net_change(self, stage: Stage, staged: str, scope: Predicate) -> NetChange:
        raise LookedAtFiles(f"{stage.branch}@{staged}")


def test_a_verdict_from_before_an_amendment_publishes_nothing(tmp_path: Path) -> None:
    manifest = sample_manifest()
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        run = accepted_run(store, manifest)
        old = store.runs.verdict(run.run_id)
        assert old is not None

        def tried(verdict: Verdict) -> None:
            job = PublishJob(
                run=store.runs.run(run.run_id),
                manifest=manifest,
                store=cast("Store", store),
                target=cast("Target", Table(manifest)),
                engine=cast("Engine", None),
                clock=SystemClock(),
                check_lease=lambda: 1,
                on_progress=lambda _: None,
            )
            publish(job, verdict)

        with pytest.raises(LookedAtFiles):
            tried(old)
        amendment = Amendment(
            amendment=1, base="9", touched=("2025-01-01",), carried_from="77", arrived=("f",), arrived_rows=1, inputs=()
        )
        store.runs.transition(run, RunState.RUNNING, **amendment.as_json())
        store.runs.transition(store.runs.run(run.run_id), RunState.STAGED, staged="88")
        # As a process might that judged the stage before and was slow to say so.
        store.runs.transition(store.runs.run(run.run_id), RunState.ACCEPTED)
        for verdict in (old, old.model_copy(update={"staged": "88"}), old.model_copy(update={"base": "9"})):
            with pytest.raises(NotValidated, match="the stage was amended after its verdict"):
                tried(verdict)
        assert store.runs.run(run.run_id).state is RunState.ACCEPTED
        with pytest.raises(LookedAtFiles, match="_1@88"):
            tried(old.model_copy(update={"base": "9", "staged": "88"}))
