"""What is to be typed after a publish, as long as the table is to be watched and after."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backcast.cli.render.status import render_status
from backcast.model.report import Status
from backcast.model.run import Run
from backcast.model.verdict import Check, Consequence
from backcast.model.watch import Look
from backcast.status import status
from backcast.store import open_store
from backcast.store.sql import SqlStore
from backcast.testing.lives import published_run
from backcast.testing.samples import sample_manifest
from tests.unit.cli_screens import shown

AT = datetime(2026, 3, 2, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        yield store


def watched_run(store: SqlStore, seconds: int = 3600) -> Run:
    manifest = sample_manifest()
    settings = manifest.settings.model_copy(update={"watch_seconds": seconds})
    return published_run(store, manifest.model_copy(update={"settings": settings}), published_at=AT)


def look(store: SqlStore, run: Run, *, passed: bool) -> None:
    """With a warning, which fails no look."""
    checks = (
        Check(name="published files", passed=False, detail="1 of 2", consequence=Consequence.WARN),
        Check(name="key unique", passed=passed, detail="day, shop"),
    )
    store.runs.record(run.run_id, "watch.looked", **Look(version="82", rows=4, checks=checks, at=AT).as_json())


def after(store: SqlStore, run: Run, **since: float) -> Status:
    return status(store.runs, run.run_id, AT + timedelta(**since))


def test_the_watch_is_the_next_step_until_its_time_is_over(store: SqlStore) -> None:
    run = watched_run(store)
    watch, undo = f"backcast watch {run.run_id}", f"backcast undo {run.run_id}"
    assert after(store, run, minutes=1).next_command == watch
    page = shown(render_status(after(store, run, minutes=1), AT))
    assert page.index(f"Next  {watch}") < page.index(f"To take it back  {undo}")
    look(store, run, passed=True)
    assert after(store, run, minutes=1).next_command == watch
    assert after(store, run, hours=1).next_command == undo


def test_a_failed_look_asks_for_the_undo_and_says_why(store: SqlStore) -> None:
    run = watched_run(store)
    look(store, run, passed=False)
    found = after(store, run, minutes=1)
    assert found.next_command == f"backcast undo {run.run_id}"
    assert found.because == "published, and the newest look at the table failed: key unique"
    look(store, run, passed=True)
    assert after(store, run, minutes=1).because == "published; readers see the new rows"


def test_nothing_is_to_be_watched_where_no_time_is_declared(store: SqlStore) -> None:
    run = watched_run(store, 0)
    assert after(store, run, minutes=1).next_command == f"backcast undo {run.run_id}"
