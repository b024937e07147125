"""Merge: by key, where the newer row wins, and no file is written that holds no key which changes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backcast.errors import Conflict, Refused
from backcast.model.table import Merged
from backcast.spark.engine import SparkEngine
from backcast.testing.faults import at_point
from backcast.testing.target_lab import Lab, date_of
from backcast.testing.target_moves import (
    ALL,
    MERGING,
    beside,
    days,
    decided,
    frame,
    merge,
    open_stage,
    publish,
    rows_of,
    undo,
    where,
)
from backcast.testing.target_suite import TargetSuite, metadata_only, refused


class MergeContract(TargetSuite):
    """Stage, publish and undo of merged rows."""

    def test_the_newer_row_of_a_key_wins_and_only_its_file_is_written_anew(self, lab: Lab) -> None:
        """Insert, update, move to another day and delete; what is not newer stays, and a repeat changes nothing."""
        table = lab.three_days()
        target, spark, before, rows = table.target(), lab.spark, table.values(), table.rows()
        stage = open_stage(target)
        news = [
            (0, 1, 50.0),  # newer
            (3, 1, 99.0),  # deleted
            (6, 1, 5.0),  # older
            (9, 1, 10.0),  # newer, and on another day from now on
            (1, 2, 0.5),  # older
            (4, 2, 4.0),  # as new
            (7, 2, 1.0),  # deleted, and older
            (100, 3, 1.0),  # new
            (500, 3, 1.0),  # deleted, and never there
        ]
        moved = [(number, 3 if number == 9 else day, v) for number, day, v in news]
        commit = merge(target, stage, frame(spark, moved), gone=(3, 7, 500))
        assert commit.merged == Merged(inserted=1, replaced=2, removed=1, stayed=4, absent=1)
        assert commit.rows == 3
        expected = sorted(
            [
                *(row for row in before if row[0] not in (0, 3, 9)),
                (0, 1, 50.0),
                (9, 3, 10.0),
                (100, 3, 1.0),
            ]
        )
        assert rows_of(target.read(commit.version, ALL)) == expected
        net = target.net_change(stage, commit.version, ALL)
        assert [each.partition for each in net.removed] == ["day=2026-01-01"]
        assert sorted({each.partition for each in net.added}) == ["day=2026-01-01", "day=2026-01-03"]
        assert table.rows() == rows

        again = merge(target, stage, frame(spark, moved), gone=(3, 7, 500), token=2)
        assert again.merged == Merged(stayed=7, absent=2)
        assert (again.rows, again.added) == (0, ())
        assert target.net_change(stage, again.version, ALL).digest() == net.digest()
        assert table.target().history(stage) == (commit, again)

        table.append((900, 1, 1.0))
        with metadata_only(table):
            target.commit(beside(target, net))
        assert table.values() == sorted([*expected, (900, 1, 1.0)])
        with metadata_only(table):
            undo(target, net, ALL)
        assert table.values() == sorted([*before, (900, 1, 1.0)])

    @pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
    def test_a_key_of_two_chunks_has_its_newest_row_in_whatever_order(
        self,
        lab: Lab,
        partitioned: bool,
    ) -> None:
        """Also into a table that is empty at the base, and where the table's own row has no version."""
        table = lab.create(partitioned=partitioned)
        target, spark = table.target(), lab.spark
        stage = open_stage(target)
        merge(target, stage, frame(spark, [(1, 1, 5.0), (2, 1, 1.0)]), chunks=("b",))
        merge(target, stage, frame(spark, [(1, 1, 3.0), (2, 1, 2.0)]), token=2, chunks=("a",))
        last = merge(target, stage, frame(spark, []), token=3, chunks=("c",))
        assert (last.merged, last.added) == (Merged(), ())
        net = target.net_change(stage, last.version, ALL)
        with metadata_only(table):
            publish(target, net, ALL)
        assert table.values() == [(1, 1, 5.0), (2, 1, 2.0)]

        table.people.sql(f"INSERT INTO {table.name} VALUES (3, DATE'2026-01-01', NULL)")
        stage = open_stage(target, "r2")
        commit = merge(target, stage, frame(spark, [(3, 1, -1.0), (1, 1, 4.0)]))
        assert commit.merged == Merged(replaced=1, stayed=1)
        assert rows_of(target.read(commit.version, ALL)) == [(1, 1, 5.0), (2, 1, 2.0), (3, 1, -1.0)]

    def test_rows_that_cannot_be_merged_are_refused_and_leave_no_commit(self, lab: Lab) -> None:
        """No key, no version, a key twice, out of scope; keys that the table has out of scope; and rows after a delete
        by another chunk, which an older row of that key would undo.
        """
        table = lab.three_days()
        target, spark = table.target(), lab.spark
        stage = open_stage(target)
        fine = frame(spark, [(0, 1, 50.0)])
        cases = {
            "1 row to merge without a value in the key": fine.unionByName(fine.selectExpr("NULL AS id", "day", "v")),
            "1 row to merge without a value in v": fine.selectExpr("id", "day", "CAST(NULL AS DOUBLE) AS v"),
            "1 row to merge with a key that another one has too, for example id=0": fine.unionByName(fine),
        }
        for words, rows in cases.items():
            with pytest.raises(Refused, match=words):
                merge(target, stage, rows)
        with pytest.raises(Refused, match="1 row to merge out of scope, for example id=0"):
            merge(target, stage, fine, scope=days(2, 2))
        with pytest.raises(Refused, match="keys of this merge out of its scope, for example id=1"):
            merge(target, stage, frame(spark, [(1, 1, 50.0)]), scope=days(1, 1))
        narrow = open_stage(target, "r2", days(1, 1))
        masked = replace(MERGING, masked=("ID",))
        with pytest.raises(Refused, match=r"keys of this merge out of its scope, for example id=\*\*\*$"):
            merge(target, narrow, frame(spark, [(1, 1, 50.0)]), scope=days(1, 1), merging=masked)
        with pytest.raises(Refused, match=r"1 row to merge out of scope, for example id=\*\*\*$"):
            merge(target, stage, frame(spark, [(3, 1, 50.0)]), gone=(3,), scope=where("id", "0"), merging=masked)
        assert target.history(stage) == target.history(narrow) == ()
        commit = merge(target, stage, frame(spark, [(0, 1, 50.0), (12, 1, 1.0)]), scope=where("id", "0", "12"))
        assert commit.merged == Merged(replaced=1, inserted=1)
        merge(target, stage, frame(spark, [(500, 1, 9.0)]), gone=(500,), token=2, chunks=("c2",))
        with pytest.raises(Refused, match="c2 deleted rows on this stage"):
            merge(target, stage, frame(spark, [(500, 1, 1.0)]), token=3, chunks=("c3",))

    def test_rows_are_computed_once_and_their_digest_is_that_of_what_was_merged(self, lab: Lab) -> None:
        """However often a merge looks at them; whoever observes them is told once, and tells all of them."""
        table = lab.three_days()
        target, context = table.target(), lab.spark.sparkContext
        computed, stage = context.accumulator(0), open_stage(target)

        def count(row: tuple[object, ...]) -> tuple[object, ...]:
            computed.add(1)
            return row

        values = [(0, date_of(1), 50.0), (6, date_of(1), 1.0), (100, date_of(3), 1.0), (3, date_of(1), 99.0)]
        rows = lab.spark.createDataFrame(context.parallelize(values, 2).map(count), "id bigint, day date, v double")
        observed, digest = SparkEngine().observed(rows)
        commit = merge(target, stage, observed, gone=(3,))
        assert commit.merged == Merged(inserted=1, replaced=1, removed=1, stayed=1)
        assert computed.value == len(values)
        seen = digest()
        assert seen is not None
        assert seen.rows == len(values)

    def test_a_merge_that_another_one_overtook_lands_nothing(self, lab: Lab) -> None:
        """What it compared its rows with is not what is there any more; repeated, it compares again."""
        table = lab.three_days()
        target, spark = table.target(), lab.spark
        stage = open_stage(target)

        def other() -> None:
            merge(table.target(), stage, frame(spark, [(100, 1, 9.0), (0, 1, 60.0)]), token=2, chunks=("b",))

        rows = frame(spark, [(100, 1, 1.0), (0, 1, 50.0)])
        with at_point("chunk.before-commit", other), pytest.raises(Conflict):
            merge(target, stage, rows)
        assert [each.token for each in target.history(stage)] == [2]
        commit = merge(target, stage, rows, token=3)
        assert commit.merged == Merged(stayed=2)

    def test_what_others_do_to_a_file_that_a_merge_wrote_anew_is_a_conflict(self, lab: Lab) -> None:
        """Rows that arrived since the decision are a conflict; those before it may be kept."""
        table = lab.three_days()
        target, before = table.target(), table.values()
        stage = open_stage(target)
        commit = merge(target, stage, frame(lab.spark, [(0, 1, 50.0)]))
        net = target.net_change(stage, commit.version, ALL)
        change = decided(target, net, ALL)
        table.append((900, 2, 1.0))
        with refused(table, Conflict):
            target.commit(change)
        publish(target, net, ALL, fence="pub-2")
        assert table.values() == sorted([*((0, 1, 50.0) if row[0] == 0 else row for row in before), (900, 2, 1.0)])

        stage = open_stage(target, "r2")
        commit = merge(target, stage, frame(lab.spark, [(1, 2, 50.0)]))
        late = target.net_change(stage, commit.version, ALL)
        table.delete("id = 4")
        with refused(table, Conflict, match="not live any more"):
            target.commit(beside(target, late, fence="pub-3"))
