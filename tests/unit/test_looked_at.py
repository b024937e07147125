"""What a run changed, as its page and `explain` tell it: of the whole run, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backcast.attest.archive import unpacked
from backcast.attest.bundle import bundle
from backcast.attest.explain import explain, window_of
from backcast.attest.step import attest
from backcast.cli.render.explain import render_explanation
from backcast.model.approval import GIVEN, Person, as_data
from backcast.model.change import ChunkChange, StageChange
from backcast.model.explanation import Touch
from backcast.model.layer import Consequence, Layer
from backcast.model.manifest import Manifest
from backcast.model.policy import Policy, need_under, reach_of
from backcast.model.rule import RuleResult
from backcast.model.run import Run
from backcast.model.table import PublishMode
from backcast.page.run import run_page
from backcast.store import open_store
from backcast.store.sql import SqlStore
from backcast.testing.lives import published_run
from backcast.testing.samples import sample_manifest, sample_verdict
from tests.unit.cli_screens import shown

STAGED = sample_verdict("any").staged


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        yield store


def part(chunk: str, before: int, after: int) -> dict[str, Any]:
    return {"chunk": chunk, "base": {"rows": before}, "stage": {"rows": after}}


def looked(store: SqlStore, run: Run, staged: str, summary: str, *parts: dict[str, Any], added: int = 0) -> None:
    """Somebody asked for the diff of that version of the stage."""
    rows = {"added": added, "removed": 0, "changed": 0, "format_only": 0}
    base = sample_verdict(run.run_id).base
    store.runs.record(
        run.run_id, "diff.recorded", base=base, staged=staged, summary=summary, rows=rows, partitions=list(parts)
    )


def appending() -> Manifest:
    manifest = sample_manifest()
    settings = manifest.settings.model_copy(update={"publish_mode": PublishMode.APPEND})
    return manifest.model_copy(update={"settings": settings})


def touch(store: SqlStore) -> Touch:
    (found,) = explain(store.runs, "orders", "2025-01", window_of("2025-01", "UTC"), "UTC").runs
    return found


def page(store: SqlStore, run: Run) -> str:
    return run_page(attest(store.runs, run.run_id))


def test_what_an_append_of_several_chunks_changed_is_told(store: SqlStore) -> None:
    run = published_run(store, appending())
    looked(store, run, STAGED, "900 added", part("all rows", 0, 900), added=900)
    assert touch(store).changed == "900 added"
    assert "900 added" in page(store, run)


def test_the_page_shows_rules_with_the_rows_that_break_them_and_who_agreed(store: SqlStore) -> None:
    """Whatever is in those rows and words is text there."""
    need = need_under(Policy(roles={"director": ("dan",)}), reach_of(sample_manifest(), None, whole_table=True), ())
    run = published_run(store, sample_manifest().model_copy(update={"approval": need}))
    hostile = "<script>alert(1)</script>"
    person = Person(name="dan", how="token", account="shared")
    store.runs.record(run.run_id, GIVEN, **as_data(person, "director", hostile, run.manifest_sha256, "0" * 64))
    broken = RuleResult(
        name="range amount",
        kind="range",
        layer=Layer.QUALITY,
        consequence=Consequence.WARN,
        passed=False,
        detail="2 of 900 rows",
        numbers={"failing": 2, "rows": 900},
        failing_rows=2,
        samples=({"shop": "***", "note": hostile},),
    )
    moved = broken.model_copy(
        update={"name": "sum salary", "kind": "sum", "numbers": {"stage": None}, "samples": (), "passed": True}
    )
    verdict = sample_verdict(run.run_id).model_copy(update={"results": (broken, moved)})
    store.runs.save_verdict(verdict)
    told = page(store, run)
    for shown_there in (
        "Rules and gates",
        "range amount",
        "failing 2, rows 900",
        "1 row of those that break it",
        "***",
    ):
        assert shown_there in told, shown_there
    assert "sum salary" in told
    assert "None" not in told
    for shown_there in ("Asked for: director", "dan", "token", "To be notified: stakeholders"):
        assert shown_there in told, shown_there
    assert hostile not in told
    assert told.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 3, "in the row, in the approval, and in the history"


def test_the_diff_of_a_canary_is_not_told_as_that_of_the_run(store: SqlStore) -> None:
    run = published_run(store)
    looked(store, run, "76", "3 added", part("2025-01-01", 297, 300), added=3)
    assert touch(store).changed == "nobody compared the rows of the whole run"
    assert [each.before for each in touch(store).chunks] == [None, None, None]
    assert "3 added." not in page(store, run)
    parts = [part(f"2025-01-0{day}", 290, 300) for day in (1, 2, 3)]
    looked(store, run, STAGED, "30 added", *parts, added=30)
    looked(store, run, "76", "3 added", part("2025-01-01", 297, 300), added=3)
    assert touch(store).changed == "30 added"
    assert [each.before for each in touch(store).chunks] == [290, 290, 290]
    told = page(store, run)
    assert f"against stage {STAGED}: 30 added." in told
    assert "3 added." not in told


def test_every_bundle_tells_what_the_verdict_counted_and_where_the_rest_is(store: SqlStore) -> None:
    run = published_run(store)
    counted = StageChange(before=890, after=900, chunks=(ChunkChange(chunk="2025-01-01", before=890, after=900),))
    store.runs.save_verdict(sample_verdict(run.run_id).model_copy(update={"change": counted}))

    def told() -> tuple[str, int, str]:
        found = json.loads(unpacked(bundle(attest(store.runs, run.run_id)))["change.json"])
        return found["looked_at"], found["change"]["chunks"][0]["before"], found["columns_and_rows"]

    assert told() == ("counts only", 890, f"backcast diff {run.run_id}")
    looked(store, run, STAGED, "30 added", *(part(f"2025-01-0{day}", 290, 300) for day in (1, 2, 3)), added=30)
    assert told() == ("counts only", 890, "diff.json")


def test_that_nobody_looked_is_said(store: SqlStore) -> None:
    run = published_run(store)
    told = "nobody compared the rows of the whole run"
    assert told.capitalize() in page(store, run)
    assert f"counts only: `backcast diff {run.run_id}`" in page(store, run)
    found = explain(store.runs, "orders", "2025-01", window_of("2025-01", "UTC"), "UTC")
    assert told in " ".join(shown(render_explanation(found)).split())
