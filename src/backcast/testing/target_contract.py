"""The contract of the port Target. An adapter brings a lab and subclasses `TargetContract`."""

from __future__ import annotations

import pytest

from backcast.errors import ChunkFailed, Conflict
from backcast.model.stage import stage_of
from backcast.testing.target_contract_append import AppendContract
from backcast.testing.target_contract_between import BetweenContract
from backcast.testing.target_contract_carry import CarryContract
from backcast.testing.target_contract_forget import ForgetContract
from backcast.testing.target_contract_merge import MergeContract
from backcast.testing.target_contract_modes import ModesContract
from backcast.testing.target_contract_publish import PublishContract, RaceContract
from backcast.testing.target_contract_read import ReadContract
from backcast.testing.target_contract_undo import LostAnswerContract, UndoContract
from backcast.testing.target_lab import Ability, Lab, LabTable
from backcast.testing.target_moves import (
    ALL,
    days,
    frame,
    open_stage,
    publish,
    restated,
    rows_of,
    undo,
    write,
)
from backcast.testing.target_suite import TargetSuite, busy, metadata_only


class StageContract(TargetSuite):
    """The stage: hidden from readers, replaced chunk by chunk, repeatable, undisturbed by live commits."""

    def test_chunks_replace_their_scope_on_a_stage_that_readers_do_not_see(self, lab: Lab) -> None:
        """A chunk can be repeated, a scope can become empty, and the table itself tells which chunk wrote what."""
        table = lab.three_days()
        target, spark, before = table.target(), lab.spark, table.rows()
        properties = table.properties()
        stage = open_stage(target)
        target.open_stage(stage)
        assert target.history(stage) == ()

        both = frame(spark, [(0, 1, 5.0), (1, 2, 6.0)])
        first = write(target, stage, days(1, 2), both, token=7, chunks=("a", "b"))
        again = write(target, stage, days(1, 1), frame(spark, [(0, 1, 8.0)]), token=8, chunks=("a",))
        emptied = write(target, stage, days(3, 3), frame(spark, []), token=9, chunks=("c, d",))

        assert table.rows() == before
        assert table.properties() == properties
        assert rows_of(target.read(emptied.version, ALL)) == [(0, 1, 8.0), (1, 2, 6.0)]
        assert rows_of(target.read(first.version, days(1, 2))) == [(0, 1, 5.0), (1, 2, 6.0)]
        assert table.target().history(stage) == (first, again, emptied)
        assert [(c.chunk_ids, c.token, c.rows) for c in (first, again, emptied)] == [
            (("a", "b"), 7, 2),
            (("a",), 8, 1),
            (("c, d",), 9, 0),
        ]
        assert sorted((f.partition, f.rows) for f in first.added) == [("day=2026-01-01", 1), ("day=2026-01-02", 1)]

        net = target.net_change(stage, emptied.version, days(1, 3))
        assert sorted(f.partition for f in net.added) == ["day=2026-01-01", "day=2026-01-02"]
        assert sorted(f.partition for f in net.removed) == ["day=2026-01-01", "day=2026-01-02", "day=2026-01-03"]
        assert net.superseded == tuple(f.path for f in first.added if f.partition == "day=2026-01-01")
        assert net.outside == ()
        assert target.net_change(stage, first.version, days(1, 3)).digest() != net.digest()
        assert target.history(stage_of("r2", stage.base)) == ()

    def test_a_stage_stays_at_its_base_whatever_lands_beside_it(self, lab: Lab) -> None:
        """Opened again by another process after live commits it is where it was; two stages know nothing of each
        other.
        """
        table = lab.three_days()
        stage = open_stage(table.target())
        table.append((900, 1, 1.0))
        target = table.target()
        target.open_stage(stage)
        staged = write(target, stage, days(2, 2), frame(lab.spark, [(1, 2, 5.0)]))
        assert 900 not in {number for number, _, _ in rows_of(target.read(staged.version, ALL))}
        _, beside = restated(target, days(1, 2), "r2")
        mine = target.net_change(stage, staged.version, days(2, 2))
        assert (len(mine.added), len(mine.removed)) == (1, 1)
        assert len(beside.removed) == 3
        assert not {f.path for f in mine.added} & {f.path for f in beside.added}

    def test_a_stage_of_an_empty_table_starts_empty_beside_live_rows(self, lab: Lab) -> None:
        """Rows that arrive after the stage was opened are not on it, and stay beside what is published."""
        table = lab.create()
        target = table.target()
        given = lab.capability(Ability.EMPTY_HAS_NO_VERSION).given
        assert (target.facts().version is None) == given
        stage = open_stage(target)
        table.append((900, 1, 1.0), (901, 2, 1.0))
        target.open_stage(stage)
        commit = write(target, stage, days(1, 1), frame(lab.spark, [(0, 1, 5.0)]))
        net = target.net_change(stage, commit.version, days(1, 1))
        assert rows_of(target.read(commit.version, ALL)) == [(0, 1, 5.0)]
        assert (len(net.added), net.removed) == (1, ())
        moved = target.movement(stage.base, days(1, 1))
        assert [(each.added, each.removed) for each in moved.commits] == [(1, 0)]
        with metadata_only(table):
            publish(target, net, days(1, 1), keep=True)
        assert table.values() == [(0, 1, 5.0), (900, 1, 1.0), (901, 2, 1.0)]
        with metadata_only(table):
            undo(target, net, days(1, 1))
        assert table.values() == [(900, 1, 1.0), (901, 2, 1.0)]
        self._opened_late(lab, table)

    def _opened_late(self, lab: Lab, table: LabTable) -> None:
        """A base without a version cannot be gone back to once there is one; a version can."""
        if not lab.capability(Ability.EMPTY_HAS_NO_VERSION).given:
            return
        before = table.traces()
        with pytest.raises(Conflict, match="empty at the base"):
            table.target().open_stage(stage_of("late", None))
        assert table.traces() == before

    def test_a_window_that_cuts_files_is_staged_row_by_row(self, lab: Lab) -> None:
        """In an unpartitioned table the rows around the window are carried over, also when the chunk is repeated,
        under a new token or under the same."""
        table = lab.create(partitioned=False)
        table.append((1, 1, 1.0), (2, 2, 2.0), (3, 3, 3.0))
        table.append((4, 4, 4.0))
        before = table.values()
        target = table.target()
        stage = open_stage(target)
        for token in (1, 2, 2):
            rows = frame(lab.spark, [(2, 2, 10.0 * token), (5, 2, 5.0)])
            commit = write(target, stage, days(2, 2), rows, token=token, exact=True)
        assert commit.rows == 2
        expected = [(1, 1, 1.0), (2, 2, 20.0), (3, 3, 3.0), (4, 4, 4.0), (5, 2, 5.0)]
        assert rows_of(target.read(commit.version, ALL)) == expected
        net = target.net_change(stage, commit.version, ALL)
        assert net.outside == ()
        assert net.superseded
        assert len(net.removed) == 1, "the file of day 4 alone stays as it is"
        assert target.net_change(stage, commit.version, days(2, 2)).outside, "carried rows lie outside the window"
        with metadata_only(table):
            publish(target, net, days(2, 2))
        assert table.values() == expected
        with metadata_only(table):
            undo(target, net, days(2, 2))
        assert table.values() == before

    def test_rows_written_outside_the_scope_never_reach_the_live_table(self, lab: Lab) -> None:
        table = lab.three_days()
        target = table.target()
        stage = open_stage(target)
        stray = frame(lab.spark, [(0, 1, 5.0), (1, 2, 6.0)])
        if not lab.capability(Ability.STRAYS_REACH_THE_STAGE).given:
            with pytest.raises(ChunkFailed):
                write(target, stage, days(1, 1), stray)
            assert target.history(stage) == ()
            return
        commit = write(target, stage, days(1, 1), stray)
        net = target.net_change(stage, commit.version, days(1, 1))
        assert [f.partition for f in net.outside] == ["day=2026-01-02"]
        assert target.net_change(stage, commit.version, days(1, 2)).outside == ()

    def test_a_transform_that_raises_fails_the_chunk_and_leaves_no_commit(self, lab: Lab) -> None:
        """The message names what the transform said; the stage is where it was and takes the chunk again."""
        from pyspark.sql import functions as F

        table = lab.three_days()
        target = table.target()
        stage = open_stage(target)
        broken = F.raise_error(F.lit("the transform broke")).cast("double")
        with pytest.raises(ChunkFailed, match="the transform broke"):
            write(target, stage, days(1, 1), frame(lab.spark, [(0, 1, 1.0)]).withColumn("v", broken))
        assert target.history(stage) == ()
        again = write(target, stage, days(1, 1), frame(lab.spark, [(0, 1, 1.0)]), token=2)
        assert target.history(stage) == (again,)

    def test_staging_beside_a_busy_live_writer(self, lab: Lab) -> None:
        """Live commits during open, write and fold neither fail the stage nor get lost or staged."""
        table = lab.three_days()
        target = table.target()
        with busy(table, day=3) as landed:
            stage = open_stage(target)
            for token in (1, 2, 3):
                rows = frame(lab.spark, [(token, 1, 5.0)])
                write(target, stage, days(1, 1), rows, token=token, exact=token == 3)
        assert [commit.token for commit in target.history(stage)] == [1, 2, 3]
        net = target.net_change(stage, target.history(stage)[-1].version, days(1, 1))
        assert (len(net.added), len(net.removed)) == (1, 1)
        assert len(table.values()) == 12 + len(landed)

    def test_a_thousand_partitions_are_added_and_removed_as_one(self, lab: Lab) -> None:
        """Into an empty table, out of it again by a run that restates them to nothing, and back by its undo."""
        many, scope = 1_000, days(1, 1_000)
        table = lab.create()
        target = table.target()
        stage = open_stage(target, "r1", scope)
        rows = frame(lab.spark, ((day, day, float(day)) for day in range(1, many + 1)))
        staged = write(target, stage, scope, rows.sortWithinPartitions("day"))
        net = target.net_change(stage, staged.version, scope)
        assert (len(net.added), net.removed, net.outside) == (many, (), ())
        with metadata_only(table):
            publish(target, net, scope)
        full = table.values()
        assert len(full) == many

        stage = open_stage(target, "r2", scope)
        staged = write(target, stage, scope, frame(lab.spark, []))
        emptied = target.net_change(stage, staged.version, scope)
        assert (emptied.added, len(emptied.removed)) == ((), many)
        with metadata_only(table):
            publish(target, emptied, scope, fence="pub-2")
        assert table.values() == []
        with metadata_only(table):
            undo(target, emptied, scope)
        assert table.values() == full


class TargetContract(
    StageContract,
    ReadContract,
    PublishContract,
    RaceContract,
    BetweenContract,
    UndoContract,
    LostAnswerContract,
    ForgetContract,
    CarryContract,
    AppendContract,
    MergeContract,
    ModesContract,
):
    """All of it."""

    def test_every_difference_is_declared_with_a_reason(self, lab: Lab) -> None:
        """A format may lack an ability; a test may not be skipped for it."""
        assert set(lab.lacks) <= set(Ability)
        assert all(len(reason) > 20 for reason in lab.lacks.values())
