"""Whether somebody runs gc, as far as the store tells."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from backcast.collection import left_by_gc
from backcast.store import open_store
from backcast.testing.lives import accepted_run, published_run, undone_run
from backcast.testing.samples import sample_manifest


def test_runs_are_left_when_gc_could_have_released_them_for_days(tmp_path: Path) -> None:
    """Published or undone, on that table, and not released; the undo window of each ends after a week."""
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        accepted_run(store, sample_manifest(days=1))
        first = published_run(store, sample_manifest(days=2))
        second = undone_run(store, sample_manifest(days=3))
        end = first.created_at + timedelta(days=7)

        def left(after_the_end: timedelta, table: str = first.table) -> set[str]:
            return set(left_by_gc(store.runs, table, end + after_the_end))

        assert left(timedelta(days=1)) == set(), "whoever runs it once a day is not late"
        assert left(timedelta(days=3)) == {first.run_id, second.run_id}
        assert left(timedelta(days=3), "lake.db.other") == set()
        (publication,) = store.runs.publications(first.run_id)
        store.runs.save_publication(publication.model_copy(update={"released_at": end}))
        assert left(timedelta(days=3)) == {second.run_id}
