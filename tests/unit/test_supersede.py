"""Whose place a publish takes: told by scope, and what another run's damaged manifest must not keep from ending."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.publish.job import PublishJob
from backcast.publish.supersede import supersede
from backcast.store import open_store
from backcast.testing.lives import published_run
from backcast.testing.samples import sample_manifest
from tests.unit.test_store_by_hand import by_hand


def older_after(folder: Path, statement: str | None = None) -> Run:
    """The older of two runs of one scope that share no file, once the newer one is published."""
    with open_store(f"sqlite:///{folder}/store.db") as store:
        older = published_run(store, added=("a",), removed=("o",))
        newer = published_run(store, sample_manifest(reason="again"), added=("b",), removed=("compacted",))
        if statement is not None:
            by_hand(folder, statement.format(older.run_id))
        nothing = cast("Any", None)
        job = PublishJob(
            run=newer,
            manifest=store.runs.manifest(newer.run_id),
            store=store,
            target=nothing,
            engine=nothing,
            clock=nothing,
            check_lease=lambda: 0,
            on_progress=lambda _: None,
        )
        supersede(job, store.runs.publications(newer.run_id)[-1])
        return store.runs.run(older.run_id)


def test_a_run_of_the_same_scope_takes_the_place_of_one_whose_files_were_compacted(tmp_path: Path) -> None:
    assert older_after(tmp_path).state is RunState.SUPERSEDED


def test_a_damaged_manifest_of_another_run_keeps_no_publish_from_ending(tmp_path: Path) -> None:
    its = "(select manifest_sha256 from runs where run_id = '{}')"
    damaged = f"update manifests set document = 'x' where sha256 = {its}"
    assert older_after(tmp_path, damaged).state is RunState.PUBLISHED
