"""Chunks that share a job: one that fails is alone in its failure, and nobody counts jobs by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.errors import ChunkFailed
from backcast.model.pipeline import TableFormat
from backcast.model.report import Progress
from backcast.model.stage import recorded_stage
from backcast.model.states import ChunkState, RunState
from backcast.model.throttle import Work
from backcast.run.brake import Brake
from backcast.testing.shop import Shop

WINDOW = ("2026-01-04", "2026-01-07")
POISONED = "2026-01-05"


def poison(shop: Shop) -> Path:
    """One day of the pipeline fails as long as the file is there."""
    cause, code = shop.root / "down", shop.root / "pipelines" / "revenue.py"
    outage = (
        f"    from pathlib import Path\n    if Path({str(cause)!r}).exists():\n"
        f"        sales = sales.withColumn('quantity', F.expr(\"if(to_date(sold_at) = DATE'{POISONED}', "
        f"CAST(raise_error('no rate for that day') AS INT), quantity)\"))\n    return ("
    )
    code.write_text(code.read_text().replace("    return (", outage))
    return cause


@pytest.mark.parametrize("shop", list(TableFormat), indirect=True)
def test_a_poisoned_chunk_of_a_group_is_alone_and_a_retry_finishes(shop: Shop, lake_root: Path) -> None:
    """The others get their outcome in the same attempt; when the cause is gone, a retry computes only what failed."""
    shop.configure(lake_root, chunks_per_job=3)
    cause = poison(shop)
    control = shop.open()
    run_id = control.plan(shop.request(*WINDOW)).run_id
    cause.touch()
    with pytest.raises(ChunkFailed, match="1 of 3 chunks failed"):
        control.run(run_id)
    chunks = {chunk.chunk_id: chunk for chunk in control.world.reader().chunks(run_id)}
    assert chunks[POISONED].state is ChunkState.FAILED
    assert "no rate for that day" in (chunks.pop(POISONED).error or "")
    assert {(chunk.state, chunk.output_rows) for chunk in chunks.values()} == {(ChunkState.STAGED, 2)}

    cause.unlink()
    done = {record.token for record in control.world.reader().stage_records(run_id)}
    assert control.retry(run_id).state is RunState.ACCEPTED
    records = control.world.reader().stage_records(run_id)
    assert [record.chunk_ids for record in records if record.token not in done] == [(POISONED,)]
    wanted = shop.expected(*WINDOW)
    control.publish(run_id)
    assert shop.rows() == wanted


def test_chunks_of_a_pipeline_that_says_nothing_share_one_small_job(shop: Shop) -> None:
    """Two hundred days, most of them empty, make one commit to the table and not two hundred."""
    config = shop.root / "backcast.yaml"
    config.write_text(config.read_text().replace("    chunks_per_job: 3\n", ""))
    control = shop.open()
    plan = control.plan(shop.request("2026-01-01", "2026-07-20"))
    assert len(plan.manifest.chunks) == 200
    control.run(plan.run_id)
    (record,) = control.world.reader().stage_records(plan.run_id)
    assert len(record.chunk_ids) == 200
    rows = [chunk.output_rows for chunk in control.world.reader().chunks(plan.run_id)]
    assert rows == [2] * 10 + [0] * 190


def test_a_bad_chunk_is_found_by_halves_and_not_by_a_commit_for_each_of_the_others(shop: Shop, lake_root: Path) -> None:
    shop.configure(lake_root, chunks_per_job=64)
    cause = poison(shop)
    control = shop.open()
    run_id = control.plan(shop.request("2026-01-01", "2026-03-06")).run_id
    cause.touch()
    with pytest.raises(ChunkFailed, match="1 of 64 chunks failed"):
        control.run(run_id)
    tried = [event for event in control.logs(run_id) if event.name == "chunks.failed"]
    assert len(tried) <= 7 + 6, "64, 32, ... 1, and as groups grow again"
    assert len(control.world.reader().stage_records(run_id)) <= 12
    assert sum(chunk.state is ChunkState.STAGED for chunk in control.world.reader().chunks(run_id)) == 63


def test_a_throttled_run_rests_between_its_jobs_and_goes_on_by_a_throttle_that_is_changed_meanwhile(
    shop: Shop, lake_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.configure(lake_root, chunks_per_job=1)
    config = shop.root / "backcast.yaml"
    config.write_text(
        config.read_text().replace("    chunks_per_job: 1\n", "    chunks_per_job: 1\n    throttle: {pause: 1h}\n")
    )
    control = shop.open()
    plan = control.plan(shop.request(*WINDOW))
    assert plan.manifest.settings.throttle is not None
    rests: list[tuple[str, int]] = []

    def look(progress: Progress) -> None:
        if not progress.message.startswith("rests "):
            return
        if not rests:
            typed = ["throttle", plan.run_id, "--pause", "1s", "--project", str(shop.root)]
            assert dispatch(typed) == 0
        rests.append((progress.message, progress.done))

    works: list[Work] = []
    after_a_job = Brake.after_a_job
    monkeypatch.setattr(Brake, "after_a_job", lambda brake, work: (works.append(work), after_a_job(brake, work)))
    run = control.run(plan.run_id, on_progress=look)
    assert run.state is RunState.ACCEPTED
    assert rests[0] == ("rests 3,600 s", 1)
    assert set(rests[1:]) == {("rests 1 s", 2)}, "after the second of three, and not after the last"
    reader = control.world.reader()
    history = control.world.target("revenue").history(recorded_stage(plan.run_id, reader.events(plan.run_id)))
    written = [sum(file.size for file in commit.added) for commit in history]
    assert [work.bytes for work in works] == written
    assert min(written) > 0
    assert reader.run(plan.run_id).manifest_sha256 == plan.sha256 == reader.manifest(plan.run_id).sha256()
