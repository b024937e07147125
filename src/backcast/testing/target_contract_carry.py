"""Chunks that a later stage of a run takes over from an earlier one: the same files, in one commit without data."""

from __future__ import annotations

from backcast.model.stage import stage_of
from backcast.model.table import Carry, FileRef, Forget, Stage
from backcast.ports import Target
from backcast.testing.target_lab import Lab
from backcast.testing.target_moves import ALL, days, frame, multiplied, open_stage, publish, rows_of, undo, write
from backcast.testing.target_suite import TargetSuite, metadata_only

SCOPE = days(1, 3)


def amended(target: Target, number: int) -> Stage:
    """A later stage of the same run, on today's head."""
    stage = stage_of("r1", target.facts().version, number)
    target.open_stage(stage, SCOPE)
    return stage


def paths(files: tuple[FileRef, ...]) -> set[str]:
    return {file.path for file in files}


class CarryContract(TargetSuite):
    """Carrying over, again and again, beside live rows and compaction; then publish, undo and forget."""

    def test_what_is_carried_over_keeps_its_files_and_is_published_with_what_is_written(self, lab: Lab) -> None:
        """Live rows in another chunk and a compaction of the base below a carried one change nothing about it."""
        table = lab.three_days(split=True)
        target, spark, before = table.target(), lab.spark, table.values()
        first = open_stage(target, scope=SCOPE)
        write(target, first, days(1, 1), frame(spark, [(0, 1, 0.0)]), token=1, chunks=("a",))
        restated = [(number, day, v * 10) for number, day, v in before if day > 1]
        kept = write(target, first, days(2, 3), frame(spark, restated), token=2, chunks=("b", "c"))
        table.append((900, 1, 9.0))
        table.compact(2)
        live, seen = table.values(), table.rows()

        second = amended(target, 1)
        carry = Carry(source=kept.version, predicate=days(2, 3), commits=((2, ("b", "c")),))
        with metadata_only(table):
            target.carry(second, carry)
            table.target().carry(second, carry)
        (told,) = table.target().history(second)
        assert (told.chunk_ids, told.token, told.rows) == (("b", "c"), 2, 0), "it is there once"
        assert rows_of(target.read(told.version, days(2, 3))) == sorted(restated)
        again = [(number, day, v * 10) for number, day, v in live if day == 1]
        done = write(target, second, days(1, 1), frame(spark, again), token=3, chunks=("a",))
        assert table.rows() == seen, "readers see nothing"

        net = target.net_change(second, done.version, SCOPE)
        assert paths(kept.added) <= paths(net.added)
        assert paths(net.removed) == target.files(second.base, SCOPE).paths
        assert net.outside == ()
        with metadata_only(table):
            publish(target, net, SCOPE)
        assert table.values() == multiplied(live, 1, 3)
        with metadata_only(table):
            undo(target, net, SCOPE)
        assert table.values() == live

    def test_several_commits_are_carried_at_once_and_from_stage_to_stage(self, lab: Lab) -> None:
        """Also an empty one, and one that was carried before; files of a forgotten stage that are live stay."""
        table = lab.three_days()
        target, spark = table.target(), lab.spark
        first = open_stage(target, scope=SCOPE)
        write(target, first, days(1, 1), frame(spark, [(1, 1, 1.0)]), token=1, chunks=("a",))
        write(target, first, days(2, 2), frame(spark, []), token=2, chunks=("b",))
        staged = write(target, first, days(3, 3), frame(spark, [(3, 3, 3.0)]), token=3, chunks=("c",)).version
        expected = [(1, 1, 1.0), (3, 3, 3.0)]
        for number in (1, 2):
            table.append((900 + number, 3, 9.0))
            stage = amended(target, number)
            target.carry(stage, Carry(source=staged, predicate=days(1, 2), commits=((1, ("a",)), (2, ("b",)))))
            rows = frame(spark, [(3, 3, 3.0)])
            staged = write(target, stage, days(3, 3), rows, token=3 + number, chunks=("c",)).version
            told = [(commit.token, commit.chunk_ids) for commit in target.history(stage)]
            assert told == [(1, ("a",)), (2, ("b",)), (3 + number, ("c",))]
        assert rows_of(target.read(staged, ALL)) == expected
        publish(target, target.net_change(stage, staged, SCOPE), SCOPE)
        stages = [stage_of("r1", None, number) for number in range(3)]
        refs = tuple(name for each in stages for name in (each.branch, each.base_tag))
        target.forget(Forget(refs=(*refs, "pub-1"), versions=(), branch=stage.branch))
        assert table.values() == expected
