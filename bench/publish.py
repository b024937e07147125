"""Promises about publish and undo: metadata only, whatever the rows, the files and the rest of the table."""

from __future__ import annotations

from dataclasses import dataclass, field

from backcast.control import ControlPlane
from backcast.model.pipeline import TableFormat
from backcast.model.stage import recorded_stage, recorded_staged
from bench.lake import Lake
from bench.measure import Sample, timed
from bench.promise import Result, Sizes, ratio_result
from bench.restatement import Restatement
from bench.tables import OTHERS_A_COMMIT, Shape

AS_FAST, MANY_FILES, OTHER_FILES = 1.2, 15.0, 1.5
ROWS_A_FILE = 10


@dataclass(slots=True)
class _Cycle:
    """One accepted run that is published and taken back again and again."""

    restatement: Restatement
    control: ControlPlane
    run_id: str
    publish: list[Sample] = field(default_factory=list)
    undo: list[Sample] = field(default_factory=list)
    written: int = 0

    @classmethod
    def of(cls, restatement: Restatement) -> _Cycle:
        """A run that replaces a file in each partition by one; another number would measure something else."""
        control, files = restatement.control(), restatement.shape.partitions
        run_id = restatement.accepted(control)
        events, manifest = control.logs(run_id), control.world.reader().manifest(run_id)
        net = control.world.target("facts").net_change(
            recorded_stage(run_id, events), recorded_staged(events), manifest.scope.predicate
        )
        assert (len(net.added), len(net.removed)) == (files, files), (len(net.added), len(net.removed))
        return cls(restatement, control, run_id)

    def published(self) -> None:
        self.publish.append(self._timed("publish"))

    def undone(self) -> None:
        self.undo.append(self._timed("undo"))

    def end(self) -> None:
        self.control.world.close()

    def _timed(self, verb: str) -> Sample:
        before = self.restatement.tables.data_files("facts")
        work = self.control.publish if verb == "publish" else self.control.undo
        sample = timed(lambda: work(self.run_id))
        self.written += self.restatement.tables.data_files("facts") - before
        return sample


def measure_rows(lake: Lake, table_format: TableFormat, sizes: Sizes) -> list[Result]:
    """The same number of files with few and with many rows in them."""
    few = _Cycle.of(lake.restatement(table_format, Shape(sizes.fewer_rows, sizes.days)))
    many = _Cycle.of(lake.restatement(table_format, Shape(sizes.rows, sizes.days)))
    text = f"{{}} of {sizes.rows:,} rows as fast as of {sizes.fewer_rows:,}"
    return _measured("publish-rows", text, AS_FAST, many, few, sizes)


def measure_files(lake: Lake, table_format: TableFormat, sizes: Sizes) -> list[Result]:
    """Many files replaced by many, against few by few."""
    many, few = (
        _Cycle.of(lake.restatement(table_format, _small_files(sizes, shards)))
        for shards in (sizes.shards, sizes.fewer_shards)
    )
    text = f"{{}} of {many.restatement.shape.partitions:,} files against {few.restatement.shape.partitions}"
    return _measured("publish-files", text, MANY_FILES, many, few, sizes)


def measure_others(lake: Lake, table_format: TableFormat, sizes: Sizes) -> list[Result]:
    """The same small change in a table with many other files, and in one as old that has as good as none."""
    shape = _small_files(sizes, sizes.fewer_shards)
    crowded, empty = (lake.restatement(table_format, shape, name=name) for name in ("_crowded", "_alone"))
    crowded.tables.add_others("facts", sizes.other_files)
    empty.tables.add_others("facts", -(-sizes.other_files // OTHERS_A_COMMIT), a_commit=1)
    among, alone = _Cycle.of(crowded), _Cycle.of(empty)
    text = f"{{}} of {shape.partitions} files beside {sizes.other_files:,} others, against a table as old"
    return _measured("publish-others", text, OTHER_FILES, among, alone, sizes)


def _small_files(sizes: Sizes, shards: int) -> Shape:
    return Shape(sizes.days * shards * ROWS_A_FILE, sizes.days, shards)


def _measured(name: str, text: str, limit: float, one: _Cycle, other: _Cycle, sizes: Sizes) -> list[Result]:
    """Publish and undo as ratios, and the data files that both sides wrote in all of their commits."""
    _in_turn(one, other, sizes)
    commits, written = 2 * (sizes.warm_up + sizes.cycles), one.written + other.written
    return [
        ratio_result(name, text.format("publish"), limit, one.publish, other.publish),
        ratio_result(name, text.format("undo"), limit, one.undo, other.undo),
        Result(
            name=name,
            promise=f"data files written by these {commits} publishes and as many undos",
            target="0",
            measured=str(written),
            held=written == 0,
        ),
    ]


def _in_turn(one: _Cycle, other: _Cycle, sizes: Sizes) -> None:
    """Cycles to warm up, then those that count; the order changes from cycle to cycle."""
    for number in range(sizes.warm_up + sizes.cycles):
        order = (one, other) if number % 2 == 0 else (other, one)
        for each in order:
            each.published()
        for each in order:
            each.undone()
    for each in (one, other):
        del each.publish[: sizes.warm_up], each.undo[: sizes.warm_up]
        each.end()
