"""Publish: one metadata-only commit of exactly the staged files, decided on the head, under a fence."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Barrier

import pytest

from backcast.errors import Conflict, Drifted, Refused, StateConflict
from backcast.model.table import Change
from backcast.ports import Target
from backcast.testing.faults import at_point
from backcast.testing.target_lab import Ability, Lab, LabTable, Writer, day_literal, plain_shape
from backcast.testing.target_moves import (
    day_of,
    days,
    decided,
    frame,
    multiplied,
    open_stage,
    publish,
    restated,
    where,
    write,
)
from backcast.testing.target_suite import TargetSuite, metadata_only, refused


class PublishContract(TargetSuite):
    """Alone, twice, and beside others."""

    def test_publish_swaps_files_and_writes_none(self, lab: Lab) -> None:
        """The published files are the staged ones with their statistics; old versions still read as they were."""
        table = lab.three_days()
        target, before, rows = table.target(), table.values(), table.rows()
        _, net = restated(target, days(1, 2))
        assert target.probe("pub-1") is None
        with metadata_only(table):
            version = publish(target, net, days(1, 2))
        assert table.target().probe("pub-1") == version == target.facts().version
        assert table.values() == multiplied(before, 1, 2)
        assert table.rows_at(version) == table.rows()
        assert net.base is not None
        assert table.rows_at(net.base) == rows
        live = target.files(version, days(1, 2))
        swaps = lab.capability(Ability.SWAPS_FILES).given
        assert (live.paths == {each.path for each in net.added}) == swaps
        assert (target.rewritten(version) is None) == swaps
        assert (live.rows, live.has_deletes) == (8, False)
        assert len(target.files(version, where("id", "0")).files) == 1, "bounds of other files rule them out"

    def test_a_commit_says_about_itself_what_it_was_given(self, lab: Lab) -> None:
        """Also when others have committed since; other people's commits say nothing of ours, and a version that never
        was is refused.
        """
        table = lab.three_days()
        target, scope = table.target(), days(1, 1)
        _, net = restated(target, scope)
        given = {"backcast.change": "publish", "backcast.events-head": "a" * 64, "backcast.reason": 'a "quoted" ä'}
        version = target.commit(replace(decided(target, net, scope), properties=given))
        table.append((900, 3, 1.0))
        told = table.target().properties(version)
        assert {key: told.get(key) for key in given} == given
        newest = target.facts().version
        assert newest is not None
        assert table.target().properties(newest) == {}
        with pytest.raises(Drifted):
            target.properties("987654321")

    def test_live_rows_beside_the_scope_are_no_movement_and_in_it_they_are(self, lab: Lab) -> None:
        """With rows kept, those in scope stay beside the restated ones."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 2)
        _, net = restated(target, scope)
        table.append((900, 3, 1.0))
        assert not target.movement(net.base, scope).moved
        table.append((901, 1, 1.0))
        moved = target.movement(net.base, scope)
        assert moved.moved
        assert not moved.only_compaction
        assert [(f.partition, f.rows) for f in moved.added] == [("day=2026-01-01", 1)]
        assert [(each.added, each.removed) for each in moved.commits] == [(1, 0)]
        with metadata_only(table):
            publish(target, net, scope, keep=True)
        assert table.values() == sorted([*multiplied(before, 1, 2), (900, 3, 1.0), (901, 1, 1.0)])

    def test_a_second_publish_is_refused_by_the_fence_and_by_the_files(self, lab: Lab) -> None:
        """Neither the same fence nor the same files under another fence can double rows."""
        table = lab.three_days()
        target, scope = table.target(), days(1, 1)
        _, net = restated(target, scope)
        version = publish(target, net, scope)
        with refused(table, StateConflict):
            publish(table.target(), net, scope)
        assert target.probe("pub-1") == version
        again = decided(target, net, scope, fence="pub-2")
        swaps = lab.capability(Ability.SWAPS_FILES).given
        with refused(table, Refused, Conflict, match="live already" if swaps else "not live any more"):
            target.commit(again)
        with refused(table, Conflict, match="not live any more"):
            target.commit(replace(again, add=frozenset()))
        with refused(table, Refused, match="not in version"):
            target.commit(replace(again, remove=frozenset(), add=frozenset({"no/such/file.parquet"})))
        assert target.probe("pub-2") is None

    def test_a_scope_restated_to_empty_becomes_empty(self, lab: Lab) -> None:
        """Files only go; a change without any file still leaves its witness."""
        table = lab.three_days()
        target, scope = table.target(), days(1, 1)
        stage = open_stage(target)
        commit = write(target, stage, scope, frame(lab.spark, []))
        net = target.net_change(stage, commit.version, scope)
        assert (net.added, len(net.removed)) == ((), 1)
        with metadata_only(table):
            publish(target, net, scope)
        assert {day for _, day, _ in table.values()} == {2, 3}
        version = publish(target, replace(net, removed=()), scope, fence="pub-2")
        assert target.probe("pub-2") == version
        assert len(table.values()) == 8

    def test_a_commit_elsewhere_since_the_decision_is_no_conflict(self, lab: Lab) -> None:
        """Otherwise a writer that commits faster than files are listed would starve every publish."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        change = decided(target, net, scope)
        table.append((900, 3, 1.0))
        table.delete("id = 2")
        target.commit(change)
        kept = [row for row in multiplied(before, 1, 1) if row[0] != 2]
        assert table.values() == sorted([*kept, (900, 3, 1.0)])

    def test_a_change_in_scope_since_the_decision_is_a_conflict_and_nothing_lands(self, lab: Lab) -> None:
        """By every writer, each on a day of its own, and by one that deletes the whole day."""
        table = lab.week()
        target = table.target()
        _, net = restated(target, days(1, 7))
        for day, writer in enumerate([*Writer, "delete the day"], start=1):
            change = decided(target, day_of(net, day), days(day, day), fence=f"pub-{day}")
            assert len(change.remove) == 2
            if isinstance(writer, Writer):
                table.somebody(writer, day, plain_shape(present=day, absent=900))
            else:
                table.delete(f"day = {day_literal(day)}")
            with refused(table, Conflict):
                target.commit(change)
            assert target.probe(f"pub-{day}") is None, writer

    def test_a_delete_beside_an_exact_scope_since_the_decision_does_not_come_back(self, lab: Lab) -> None:
        """Files of an exact scope carry rows beside it: one that was deleted meanwhile must not be published again."""
        table = lab.create(partitioned=False)
        table.append((1, 1, 1.0), (2, 2, 2.0), (3, 3, 3.0))
        target, scope = table.target(), days(2, 2)
        _, net = restated(target, scope, exact=True)
        change = decided(target, net, scope)
        table.delete("id = 3")
        with refused(table, Conflict):
            target.commit(change)
        assert table.values() == [(1, 1, 1.0), (2, 2, 2.0)]

    def test_an_append_elsewhere_in_an_unpartitioned_table_is_kept(self, lab: Lab) -> None:
        """At worst the publish is decided again."""
        table = lab.create(partitioned=False)
        table.append((1, 1, 1.0), (2, 2, 2.0))
        target, scope = table.target(), days(2, 2)
        _, net = restated(target, scope, exact=True)
        change = decided(target, net, scope)
        table.append((900, 9, 9.0))
        lands_or_again(lab, Ability.BOUNDS_PROTECT, table, target, change, lambda: decided(target, net, scope))
        assert table.values() == [(1, 1, 1.0), (2, 2, 20.0), (900, 9, 9.0)]

    @pytest.mark.parametrize("day", [1, 3], ids=["in scope", "elsewhere"])
    def test_a_live_commit_while_landing_is_never_lost(self, lab: Lab, day: int) -> None:
        """Overtaken after the last look: in scope it is a conflict; elsewhere it lands, or is decided again."""
        table = lab.three_days()
        target, before, scope = table.target(), table.values(), days(1, 1)
        _, net = restated(target, scope)
        change = decided(target, net, scope)
        with at_point("publish.before-commit", lambda: table.append((901, day, 1.0))) as reached:
            if day == 1 or not lab.capability(Ability.MOVES_WHILE_LANDING).given:
                with pytest.raises(Conflict):
                    target.commit(change)
                assert target.probe("pub-1") is None
            else:
                target.commit(change)
        assert reached[0] == "publish.before-commit"
        if day == 1:
            assert table.values() == sorted([*before, (901, 1, 1.0)])
            return
        if target.probe("pub-1") is None:
            publish(target, net, scope)
        assert table.values() == sorted([*multiplied(before, 1, 1), (901, 3, 1.0)])


class RaceContract(TargetSuite):
    """Several publishers on one table."""

    def test_two_changes_of_one_head_land_both_when_they_do_not_meet(self, lab: Lab) -> None:
        table = lab.three_days()
        target, before = table.target(), table.values()
        nets = [restated(target, days(day, day), f"r{day}")[1] for day in (1, 2)]
        changes = [decided(target, net, days(day, day), fence=f"pub-{day}") for day, net in enumerate(nets, 1)]
        with metadata_only(table):
            for change in changes:
                target.commit(change)
        assert table.values() == multiplied(before, 1, 2)

    def test_of_two_changes_that_meet_the_second_is_a_conflict(self, lab: Lab) -> None:
        table = lab.three_days()
        target, before = table.target(), table.values()
        _, wide = restated(target, days(1, 2), "r1")
        _, narrow = restated(target, days(2, 3), "r2")
        late = decided(target, narrow, days(2, 3), fence="pub-2")
        publish(target, wide, days(1, 2))
        with refused(table, Conflict):
            target.commit(late)
        assert target.movement(narrow.base, days(2, 3)).moved
        assert table.values() == multiplied(before, 1, 2)

    def test_publishers_that_race_all_land_once_when_each_decides_again(self, lab: Lab) -> None:
        table = lab.three_days()
        before = table.values()
        nets = [restated(table.target(), days(day, day), f"r{day}")[1] for day in (1, 2, 3)]

        def work(day: int) -> None:
            mine = table.elsewhere().target()
            for _ in range(20):
                try:
                    publish(mine, nets[day - 1], days(day, day), fence=f"pub-{day}")
                except StateConflict:
                    raise
                except Conflict:
                    continue
                return
            raise AssertionError(f"publisher {day} never landed")

        race([partial(work, day) for day in (1, 2, 3)])
        assert table.values() == multiplied(before, 1, 3)

    def test_one_change_committed_by_two_processes_at_once_lands_once(self, lab: Lab) -> None:
        """What a process does that lost its lease without knowing."""
        table = lab.three_days()
        before = table.values()
        _, net = restated(table.target(), days(1, 1))
        change = decided(table.target(), net, days(1, 1))
        outcomes: list[str] = []

        def work() -> None:
            mine = table.elsewhere().target()
            try:
                mine.commit(change)
                outcomes.append("landed")
            except (Conflict, Refused):
                outcomes.append("refused")

        race([work, work])
        assert sorted(outcomes) == ["landed", "refused"]
        assert table.values() == multiplied(before, 1, 1)


def lands_or_again(
    lab: Lab, ability: Ability, table: LabTable, target: Target, change: Change, again: Callable[[], Change]
) -> None:
    """With the ability the change lands; without it nothing does until it is decided again."""
    if not lab.capability(ability).given:
        with refused(table, Conflict):
            target.commit(change)
        change = again()
    with metadata_only(table):
        target.commit(change)


def race(runners: list[Callable[[], None]]) -> None:
    """All at the same time; raises what any of them raised."""
    start = Barrier(len(runners))

    def run(runner: Callable[[], None]) -> None:
        start.wait()
        runner()

    with ThreadPoolExecutor(len(runners)) as pool:
        for each in [pool.submit(run, runner) for runner in runners]:
            each.result()
