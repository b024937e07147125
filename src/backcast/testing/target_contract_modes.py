"""The modes append and merge through the flow's own publish and undo, with a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.errors import Drifted, ScopeChanged, UndoRefused
from backcast.model.manifest import LivePolicy
from backcast.model.states import RunState
from backcast.model.table import PublishMode
from backcast.publish.decide import RestageNeeded
from backcast.store import open_store
from backcast.testing.faults import SimulatedCrash, crash_at
from backcast.testing.target_flow import Flow
from backcast.testing.target_lab import Lab, Row
from backcast.testing.target_moves import append, frame, merge
from backcast.testing.target_suite import TargetSuite, metadata_only, refused

if TYPE_CHECKING:
    from backcast.store.sql import SqlStore


class ModesContract(TargetSuite):
    """Whole lives of runs that add or merge rows."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[SqlStore]:
        store = open_store(f"sqlite:///{tmp_path}/store.db")
        yield store
        store.close()

    def test_appends_never_meet_live_rows_nor_each_other(self, lab: Lab, store: SqlStore) -> None:
        """Published beside live rows, deletes and a compaction; once, although its process died after the commit.

        Two appends do not supersede each other. An undo takes out the rows of one, and after a compaction it needs
        `--rewrite`; a changed schema stops a publish.
        """
        table = lab.three_days(split=True)
        flow, before = Flow(table, store), table.values()
        first, second = (_appending(flow, number) for number in (50, 60))
        table.append((900, 1, 1.0))
        table.delete("id = 2")
        table.compact(1)
        with pytest.raises(SimulatedCrash), crash_at("publish.after-commit"):
            flow.publish(first)
        with metadata_only(table):
            flow.publish(first)
        flow.publish(second)
        live = sorted([*(row for row in before if row[0] != 2), (900, 1, 1.0)])
        assert table.values() == sorted([*live, *_appended(50), *_appended(60)])
        assert [flow.run(each).state for each in (first, second)] == [RunState.PUBLISHED] * 2

        with metadata_only(table):
            flow.undo(first)
        assert table.values() == sorted([*live, *_appended(60)])
        flow.publish(first)
        table.append((901, 1, 1.0))
        table.compact()
        with refused(table, UndoRefused, match="2 of 2 published files were since compacted"):
            flow.undo(second)
        flow.undo(second, rewrite=True)
        assert table.values() == sorted([*live, *_appended(50), (901, 1, 1.0)])
        table.delete("id = 50")
        with pytest.raises(UndoRefused, match="published rows were changed or deleted"):
            flow.undo(first, rewrite=True)

        third = _appending(flow, 70)
        table.add_column("note")
        with pytest.raises(Drifted, match="columns changed"):
            flow.publish(third)

    def test_a_merge_lands_beside_live_rows_of_other_keys_only(self, lab: Lab, store: SqlStore) -> None:
        """Also beside a compaction of files that it left alone; what it took out comes back by its undo."""
        table = lab.three_days(split=True)
        flow, before = Flow(table, store), table.values()
        run = _merging(flow, [(0, 1, 50.0), (3, 1, 99.0), (100, 1, 1.0)], gone=(3,))
        table.append((900, 1, 1.0))
        table.compact(2)
        with metadata_only(table):
            flow.publish(run)
        merged = [(0, 1, 50.0), (100, 1, 1.0), (900, 1, 1.0)]
        assert table.values() == sorted([*(row for row in before if row[0] not in (0, 3)), *merged])

        late = _merging(flow, [(1, 2, 50.0), (2, 3, 1.0)])
        again = _merging(flow, [(1, 2, 60.0)], live=LivePolicy.RESTAGE)
        table.append((2, 3, 9.0))
        table.append((1, 2, 7.0))
        with refused(table, ScopeChanged, match="keys that the run merges, for example id=1$"):
            flow.publish(late)
        with refused(table, RestageNeeded, match="keys that the run merges"):
            flow.publish(again)
        assert flow.run(again).state is RunState.ACCEPTED

        table.append((3, 1, 1.0))
        with refused(table, UndoRefused, match="keys that the merge took away, for example id=3"):
            flow.undo(run)
        table.delete("id = 3")
        others = [(1, 2, 7.0), (2, 3, 9.0), (900, 1, 1.0)]
        with metadata_only(table):
            flow.undo(run)
        assert table.values() == sorted([*before, *others])
        flow.publish(run)
        table.compact(1)
        with refused(table, UndoRefused, match="were since compacted"):
            flow.undo(run)
        flow.undo(run, rewrite=True)
        assert table.values() == sorted([*before, *others])

    def test_a_merge_of_a_file_that_others_changed_is_refused_or_staged_again(self, lab: Lab, store: SqlStore) -> None:
        table = lab.three_days()
        flow = Flow(table, store)
        fails = _merging(flow, [(0, 1, 50.0)])
        again = _merging(flow, [(0, 1, 60.0)], live=LivePolicy.RESTAGE)
        table.delete("id = 3")
        with refused(table, ScopeChanged, match="1 file left"):
            flow.publish(fails)
        with refused(table, RestageNeeded):
            flow.publish(again)


def _appended(number: int) -> list[Row]:
    return [(number, 1, 1.0), (number + 1, 2, 1.0)]


def _appending(flow: Flow, number: int) -> str:
    rows = frame(flow.table.spark, _appended(number))
    return flow.accepted(f"append {number}", PublishMode.APPEND, lambda target, stage: append(target, stage, rows))


def _merging(flow: Flow, rows: list[Row], gone: tuple[int, ...] = (), live: LivePolicy = LivePolicy.FAIL) -> str:
    news = frame(flow.table.spark, rows)
    name = f"merge {rows} {live}"
    return flow.accepted(name, PublishMode.MERGE, lambda target, stage: merge(target, stage, news, gone=gone), live)
