"""Why did this change? The store alone answers, superseded and undone runs included."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backcast.attest.explain import explain, moment_of, window_of
from backcast.cli.render.explain import render_explanation
from backcast.errors import InvalidRequest
from backcast.model.explanation import Explanation
from backcast.model.manifest import Manifest
from backcast.model.scope import Scope, ValueClause, during
from backcast.model.states import RunState
from backcast.model.time import Interval
from backcast.model.verdict import Review
from backcast.store import open_store
from backcast.store.sql import SqlStore
from backcast.testing.lives import accepted_run, published_run, undone_run
from backcast.testing.samples import DAY_COLUMN, FIRST_DAY, sample_manifest, sample_verdict
from tests.unit.cli_screens import shown


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/store.db", account="ana@host-1") as store:
        yield store


def days(first: int, last: int) -> Interval:
    return Interval(start=FIRST_DAY + timedelta(days=first - 1), end=FIRST_DAY + timedelta(days=last))


def over(first: int, last: int, reason: str, *where: ValueClause) -> Manifest:
    """A plan over these days of January 2025."""
    window = days(first, last)
    predicate = during((DAY_COLUMN,), (window,)).and_values(where)
    manifest = sample_manifest(days=last, reason=reason)
    chunks = tuple(chunk for chunk in manifest.chunks if window.contains(chunk.window))
    return manifest.model_copy(update={"scope": Scope(windows=(window,), predicate=predicate), "chunks": chunks})


def asked(store: SqlStore, partition: str) -> Explanation:
    return explain(store.runs, "orders", partition, window_of(partition, "UTC"), "UTC")


def at(minute: int) -> datetime:
    return datetime(2026, 3, 2, 12, minute, tzinfo=UTC)


def test_each_piece_is_told_with_the_run_that_readers_see_there(store: SqlStore) -> None:
    first = published_run(store, over(1, 5, "first"), published_at=at(1), version="1")
    second = published_run(store, over(3, 4, "second"), published_at=at(2), version="2")
    store.runs.mark_superseded(first.run_id, second.run_id)
    store.runs.transition(first, RunState.SUPERSEDED)
    found = asked(store, "2025-01")
    assert [(each.window, each.run_id) for each in found.seen] == [
        (days(1, 2), first.run_id),
        (days(3, 4), second.run_id),
        (days(5, 5), first.run_id),
        (days(6, 31), None),
    ]
    assert found.accepted == second.run_id
    assert [each.run_id for each in found.runs] == [second.run_id, first.run_id], "newest first"
    assert found.runs[1].superseded_by == second.run_id


def test_an_undone_run_is_told_and_what_was_there_before_is_seen_again(store: SqlStore) -> None:
    first = published_run(store, over(1, 5, "first"), published_at=at(1), version="1")
    second = undone_run(store, over(3, 4, "second"), published_at=at(2), version="2")
    found = asked(store, "2025-01-03")
    assert [(each.run_id, each.window) for each in found.seen] == [(first.run_id, days(3, 3))]
    assert found.accepted == first.run_id
    told = found.runs[0]
    assert (told.run_id, told.state) == (second.run_id, "undone")
    (made,) = told.published
    assert (made.version, made.undo_version, made.account, made.undone_by) == ("2", "29", "ana@host-1", "ana@host-1")


def test_a_run_that_was_never_published_is_told_and_seen_by_nobody(store: SqlStore) -> None:
    run = accepted_run(store, over(1, 2, "waits"))
    found = asked(store, "2025-01-02")
    assert (found.accepted, [each.run_id for each in found.seen]) == (None, [None])
    (told,) = found.runs
    assert (told.run_id, told.state, told.published) == (run.run_id, "accepted", ())
    assert (told.reason, told.requested_by, told.account) == ("waits", "ann", "ana@host-1")
    assert [(chunk.chunk, chunk.rows) for chunk in told.chunks] == [("2025-01-02", 300)]


def test_a_run_over_some_rows_of_a_part_stands_beside_what_was_replaced(store: SqlStore) -> None:
    whole = published_run(store, over(1, 5, "whole"), published_at=at(1))
    some = published_run(store, over(2, 2, "one shop", ValueClause(column="shop", values=("S1",))), published_at=at(2))
    found = asked(store, "2025-01-02")
    assert [(each.run_id, each.beside) for each in found.seen] == [(whole.run_id, (some.run_id,))]
    assert found.runs[0].partly
    again = published_run(store, over(1, 3, "whole again"), published_at=at(3))
    assert [(each.run_id, each.beside) for each in asked(store, "2025-01-02").seen] == [(again.run_id, ())]


def test_what_no_run_touched_is_told_as_such(store: SqlStore) -> None:
    published_run(store, over(1, 5, "elsewhere"))
    found = asked(store, "2025-02")
    assert (found.runs, found.accepted) == ((), None)
    assert [each.run_id for each in found.seen] == [None]


def test_diffs_approvals_and_notes_on_record_are_told(store: SqlStore) -> None:
    run = published_run(store, over(1, 2, "told"))
    base = [{"chunk": "2025-01-02", "base": {"rows": 280}, "stage": {"rows": 300}}]
    other = [{"chunk": "2025-01-01", "base": {"rows": 0}, "stage": {"rows": 0}}]
    about = {"base": sample_verdict(run.run_id).base, "staged": sample_verdict(run.run_id).staged}
    store.runs.record(run.run_id, "diff.recorded", partitions=[*other, *base], summary="20 added", **about)
    store.runs.record(run.run_id, "approval.given", role="lead", by="bob", comment="go")
    store.runs.record(run.run_id, "note", text="customers were told")
    (told,) = asked(store, "2025-01-02").runs
    assert [(each.chunk, each.before, each.rows) for each in told.chunks] == [("2025-01-02", 280, 300)]
    assert told.changed == "20 added"
    assert [(word.what, word.role, word.by) for word in told.approvals] == [("given", "lead", "bob")]
    assert told.notes == ("customers were told",)


@pytest.mark.parametrize(
    ("partition", "zone", "start", "hours"),
    [
        ("2025", "UTC", "2025-01-01T00:00Z", 365 * 24),
        ("2025-04", "UTC", "2025-04-01T00:00Z", 30 * 24),
        ("2025-03-30", "Europe/Berlin", "2025-03-29T23:00Z", 23),
        ("2025-04-17", "America/New_York", "2025-04-17T04:00Z", 24),
        ("2025-04-17T05", "UTC", "2025-04-17T05:00Z", 1),
    ],
)
def test_a_part_is_a_year_month_day_or_hour_of_the_dataset_s_zone(
    partition: str, zone: str, start: str, hours: int
) -> None:
    window = window_of(partition, zone)
    assert window.start == datetime.fromisoformat(start)
    assert window.end - window.start == timedelta(hours=hours)


@pytest.mark.parametrize("wrong", ["", "april", "2025-13", "2025-4", "2025-04-31", "2025-04-17T25", "2025-04-17T05:00"])
def test_what_is_no_part_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidRequest, match="names no year"):
        window_of(wrong, "UTC")


def test_a_moment_is_asked_about_as_a_moment(store: SqlStore) -> None:
    run = published_run(store, over(1, 5, "first"))
    window = moment_of("2025-01-05T23:59:59Z", "UTC")
    assert explain(store.runs, "orders", "then", window, "UTC").accepted == run.run_id
    assert explain(store.runs, "orders", "then", moment_of("2025-01-06", "UTC"), "UTC").accepted is None


def test_a_part_of_a_run_is_told_with_all_of_it_and_with_who_accepted_what_the_gates_noticed(store: SqlStore) -> None:
    run = accepted_run(store, over(1, 5, "first"))
    verdict = store.runs.verdict(run.run_id)
    assert verdict is not None
    review = Review(by="cat", how="os-user", role="data-lead", comment="matches the ledger", at=at(3))
    store.runs.save_verdict(verdict.model_copy(update={"review": review}))
    found = asked(store, "2025-01-03")
    (touch,) = found.runs
    assert (touch.windows, touch.scope) == ((days(3, 3),), (days(1, 5),))
    page = " ".join(shown(render_explanation(found), 120).split())
    assert "scope 2025-01-03, of 2025-01-01 to 2025-01-06" in page
    assert "what the gates noticed was accepted by cat as data-lead, 2026-03-02 12:03 UTC: matches the ledger" in page
