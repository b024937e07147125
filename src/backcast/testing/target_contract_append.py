"""Append: rows come and none goes, however often a chunk is repeated and whatever others do meanwhile."""

from __future__ import annotations

import pytest

from backcast.errors import Conflict, Refused, StateConflict
from backcast.testing.faults import at_point
from backcast.testing.target_contract_undo import UNKNOWN, told
from backcast.testing.target_lab import Ability, Lab
from backcast.testing.target_moves import ALL, append, beside, frame, open_stage, rows_of, undo
from backcast.testing.target_suite import TargetSuite, metadata_only, refused


class AppendContract(TargetSuite):
    """Stage, publish and undo of added rows."""

    def test_a_repeated_chunk_takes_out_what_it_added_and_nothing_else(self, lab: Lab) -> None:
        """Under a new token, as a stale process, with no rows, and alone although it was written with another."""
        table = lab.three_days()
        target, spark, before = table.target(), lab.spark, table.rows()
        stage = open_stage(target, scope=None)
        target.open_stage(stage, None)

        def staged() -> list[tuple[int, int, float]]:
            net = target.net_change(stage, target.history(stage)[-1].version, ALL)
            assert net.removed == net.outside == ()
            return rows_of(target.read_files(net.staged, frozenset(each.path for each in net.added), ALL))

        append(target, stage, frame(spark, [(50, 1, 1.0), (51, 2, 1.0)]), token=1, chunks=("a",))
        second = append(target, stage, frame(spark, [(52, 1, 1.0)]), token=2, chunks=("b",))
        assert (second.chunk_ids, second.token, second.rows) == (("b",), 2, 1)
        assert [each.partition for each in second.added] == ["day=2026-01-01"]
        assert staged() == [(50, 1, 1.0), (51, 2, 1.0), (52, 1, 1.0)]
        again = append(target, stage, frame(spark, [(50, 3, 2.0)]), token=3, chunks=("a",))
        assert staged() == [(50, 3, 2.0), (52, 1, 1.0)]
        append(target, stage, frame(spark, [(50, 1, 1.0)]), token=1, chunks=("a", "c"))
        assert staged() in ([(50, 1, 1.0), (52, 1, 1.0)], [(50, 3, 2.0), (52, 1, 1.0)]), "a token may count once"
        append(target, stage, frame(spark, [(60, 1, 1.0), (61, 2, 1.0)]), token=4, chunks=("a", "c"))
        append(target, stage, frame(spark, [(62, 1, 1.0)]), token=5, chunks=("c",))
        assert staged() == [(52, 1, 1.0), (62, 1, 1.0)], "with its neighbour, which has to be repeated"
        last = append(target, stage, frame(spark, []), token=6, chunks=("c",))
        assert (last.rows, last.added, staged()) == (0, (), [(52, 1, 1.0)])

        assert again.version in {each.version for each in table.target().history(stage)}
        assert [each.token for each in target.history(stage)][-3:] == [4, 5, 6]
        net = target.net_change(stage, last.version, ALL)
        assert [each.path for each in net.added] == [each.path for each in second.added]
        assert len(net.superseded) >= 6
        assert table.rows() == before

    def test_what_a_stale_process_adds_at_the_last_moment_goes_too(self, lab: Lab) -> None:
        """Between the job that wrote the rows and their commit. A chunk of its own that arrives then stays."""
        table = lab.three_days()
        target, spark = table.target(), lab.spark
        stage = open_stage(target, scope=None)

        def others() -> None:
            append(table.target(), stage, frame(spark, [(50, 1, 9.0)]), token=1, chunks=("a",))
            append(table.target(), stage, frame(spark, [(60, 1, 1.0)]), token=3, chunks=("b",))

        with at_point("chunk.before-commit", others):
            commit = append(target, stage, frame(spark, [(50, 1, 1.0)]), token=2, chunks=("a",))
        assert [each.token for each in target.history(stage)] == [1, 3, 2]
        net = target.net_change(stage, commit.version, ALL)
        paths = frozenset(each.path for each in net.added)
        assert rows_of(target.read_files(net.staged, paths, ALL)) == [(50, 1, 1.0), (60, 1, 1.0)]

    @pytest.mark.parametrize("partitioned", [True, False], ids=["partitioned", "unpartitioned"])
    def test_an_append_lands_once_beside_whatever_others_do(self, lab: Lab, partitioned: bool) -> None:
        """Rows in the same partitions, deletes and a compaction, before the decision and after it.

        Neither the fence nor the files can land twice, though nothing is removed; an undo takes exactly them.
        """
        table = lab.create(partitioned=partitioned)
        table.append((1, 1, 1.0), (2, 2, 2.0), (3, 2, 3.0))
        table.append((4, 1, 4.0))
        target = table.target()
        stage = open_stage(target, scope=None)
        commit = append(target, stage, frame(lab.spark, [(50, 1, 1.0), (51, 2, 1.0)]))
        net = target.net_change(stage, commit.version, ALL)
        table.append((900, 1, 1.0))
        table.delete("id = 2")
        table.compact()
        change = beside(target, net)
        table.append((901, 2, 1.0))
        with metadata_only(table):
            version = target.commit(change)
        live = [(1, 1, 1.0), (3, 2, 3.0), (4, 1, 4.0), (900, 1, 1.0), (901, 2, 1.0)]
        assert table.values() == sorted([*live, (50, 1, 1.0), (51, 2, 1.0)])
        assert table.target().probe("pub-1") == version
        with refused(table, StateConflict):
            target.commit(change)
        with refused(table, StateConflict):
            table.target().commit(beside(target, net))
        with refused(table, Refused, match="live already"):
            target.commit(beside(target, net, fence="pub-2"))

        table.append((902, 1, 1.0))
        with metadata_only(table):
            undo(target, net, ALL)
        assert table.values() == sorted([*live, (902, 1, 1.0)])
        with metadata_only(table):
            target.commit(beside(target, net, fence="pub-2"))
        table.compact()
        with refused(table, Conflict, match="not live any more"):
            undo(target, net, ALL, fence="undo-2", of="pub-2")
        assert table.values() == sorted([*live, (902, 1, 1.0), (50, 1, 1.0), (51, 2, 1.0)])

    def test_an_append_to_a_table_that_was_empty_at_the_base(self, lab: Lab) -> None:
        """Its answer is lost on the way: it landed once, and a repeat lands nothing."""
        for place in lab.create().lost_answers:
            table = lab.create()
            target = table.target()
            stage = open_stage(target, scope=None)
            commit = append(target, stage, frame(lab.spark, [(50, 1, 1.0)]))
            net = target.net_change(stage, commit.version, ALL)
            assert (net.base is None) == lab.capability(Ability.EMPTY_HAS_NO_VERSION).given
            table.append((900, 1, 1.0))
            with table.lost_answer(place):
                heard = told(lambda: target.commit(beside(target, net)))  # noqa: B023 - called at once
            landed = table.target().probe("pub-1")
            assert landed is not None
            assert heard in (landed, UNKNOWN), place
            with refused(table, StateConflict):
                table.target().commit(beside(table.target(), net))
            assert table.values() == [(50, 1, 1.0), (900, 1, 1.0)]
            undo(target, net, ALL)
            assert table.values() == [(900, 1, 1.0)]
