"""Real checkpoints of stateful queries go back, and the windows come out as if nothing had been."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.errors import Refused
from backcast.model.checkpoint import Severity
from backcast.streams.checkpoint.backup import backup
from backcast.streams.checkpoint.change import Checks
from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.fork import fork_at_offsets, starts_after
from backcast.streams.checkpoint.proof import prove_state
from backcast.streams.checkpoint.restore import restore
from backcast.streams.checkpoint.rewind import rewind
from tests.spark.checkpoint_kit import STORES, Lab, Made, bytes_of, files_below

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


NOW = datetime(2026, 1, 1, tzinfo=UTC)
TO = 2


@pytest.fixture
def checks(spark: SparkSession) -> Checks:
    return Checks(lambda checkpoint, batch: prove_state(spark, checkpoint, batch), lambda *_: None)


COUNTED = ("operator 0 (stateStoreSave)",)
LOADED = {
    "hdfs": COUNTED,
    "changelog": COUNTED,
    "rocksdb": COUNTED,
    "format 2": ("state of format version 2",),
    "join": ("operator 0 (symmetricHashJoin, left)", "operator 0 (symmetricHashJoin, right)"),
    "dedup": ("operator 0 (dedupeWithinWatermark)",),
    "own state": tuple(f"operator 0 (transformWithStateExec, {each})" for each in ("count", "last", "places")),
}
"""What Spark is seen to load, for each kind of query that keeps state."""


@pytest.mark.parametrize("kind", LOADED)
def test_after_a_rewind_every_row_comes_once_as_in_an_uninterrupted_run(
    lab: Lab, checks: Checks, tmp_path: Path, kind: str
) -> None:
    """In other batches, and with restarts at versions of which the old past had left state."""
    made = lab.copy(kind, tmp_path / "checkpoint")
    expected = made.rows()
    assert len(expected) > 20
    assert verify(Checkpoint.at(made.path)).sound
    before = bytes_of(made.path)

    changed = rewind(made.path, lambda _: TO, checks, NOW)

    assert changed.kept is not None
    assert bytes_of(Path(changed.kept)) == before
    assert tuple(line.rpartition(": ")[0] for line in changed.proven) == LOADED[kind]
    again = Checkpoint.at(made.path)
    assert (again.planned, again.committed) == (TO, TO)
    assert not verify(again).damages
    made.given = {batch: rows for batch, rows in made.given.items() if batch <= TO}
    for stop_at in (5, 6, None) if kind in STORES else (6, None):
        lab.run(kind, made, per_batch=30, stop_at=stop_at)
    assert made.rows() == expected
    assert verify(Checkpoint.at(made.path)).sound


def test_a_backup_in_the_middle_of_a_batch_takes_the_stream_back_to_just_there(
    lab: Lab, checks: Checks, tmp_path: Path
) -> None:
    made = lab.copy("hdfs", tmp_path / "checkpoint")
    expected = made.rows()
    rewind(made.path, lambda _: 5, checks, NOW)
    kept = {}

    def meanwhile(batch: int) -> None:
        kept[batch] = backup(made.path, tmp_path / f"backup-{batch}", NOW)

    lab.run("hdfs", made, meanwhile=meanwhile)
    assert (kept[7].batch, kept[7].planned) == (6, 7)
    assert not kept[7].damages
    restore(made.path, tmp_path / "backup-7", checks, NOW)
    made.given = {batch: rows for batch, rows in made.given.items() if batch < 7}
    lab.run("hdfs", made)
    assert made.rows() == expected


def test_a_rewind_by_hand_that_leaves_state_behind_is_seen(lab: Lab, tmp_path: Path) -> None:
    made = lab.copy("changelog", tmp_path / "checkpoint")
    for name in ("offsets", "commits"):
        for file in files_below(made.path, f"{name}/[0-9]*", lambda each: int(each.name) > TO):
            file.unlink()
    found = verify(Checkpoint.at(made.path))
    assert [(each.kind, each.severity) for each in found.damages] == [("state-ahead", Severity.SILENT)]


def test_state_that_cannot_be_loaded_stops_the_rewind_and_nothing_moves(
    lab: Lab, checks: Checks, spark: SparkSession, tmp_path: Path
) -> None:
    """Its files tell, before Spark is asked; asked, Spark says so too."""
    made = lab.copy("hdfs", tmp_path / "checkpoint")
    schema = made.path / "state/0/0/_metadata/schema"
    schema.write_bytes(b"v9\nno schema")
    before = bytes_of(made.path)
    with pytest.raises(Refused, match="would be damaged: state/0/0/_metadata/schema"):
        rewind(made.path, lambda _: TO, checks, NOW)
    assert bytes_of(made.path) == before
    assert [each.name for each in tmp_path.iterdir()] == ["checkpoint"]
    with pytest.raises(Refused, match="does not load"):
        prove_state(spark, Checkpoint.at(made.path), TO)


def test_a_fork_with_fresh_state_begins_exactly_at_the_offsets_of_a_batch(
    lab: Lab, checks: Checks, tmp_path: Path
) -> None:
    made = lab.copy("stateless", tmp_path / "checkpoint")
    source = Checkpoint.at(made.path)
    forked = fork_at_offsets(source, tmp_path / "fork", starts_after(source, 3), checks)
    assert forked.query_id != source.query_id()

    other = Made(tmp_path / "fork")
    lab.run("stateless", other, per_batch=1000)
    assert Checkpoint.at(tmp_path / "fork").query_id() == forked.query_id
    later = [row for batch, rows in made.given.items() if batch > 3 for row in rows]
    assert other.rows() == sorted(later)
    assert list(other.given) == [0]
