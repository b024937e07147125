"""Promises about publish and undo: metadata only, whatever the rows, the files and the rest of the table."""

from __future__ import annotations

from dataclasses import dataclass, field

from backcast.control import ControlPlane
from backcast.model.stage import recorded_base, recorded_staged, stage_of
from bench.lake import Lake, Restatement
from bench.measure import Sample, timed
from bench.other_files import append_other_files
from bench.promise import Result, Sizes, ratio_result

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
    def of(cls, restatement: Restatement, files: int) -> _Cycle:
        """A run that replaces so many files by as many; another number would measure something else."""
        control = restatement.control()
        run_id = restatement.accepted(control)
        net = control.world.target("facts").net_change(
            stage_of(run_id, recorded_base(control.logs(run_id))),
            recorded_staged(control.logs(run_id)),
            control.world.reader().manifest(run_id).scope.predicate,
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
        before = self.restatement.data_files()
        work = self.control.publish if verb == "publish" else self.control.undo
        sample = timed(lambda: work(self.run_id))
        self.written += self.restatement.data_files() - before
        return sample


def measure_rows(lake: Lake, sizes: Sizes) -> list[Result]:
    """The same number of files with few and with many rows in them."""
    few = _Cycle.of(lake.restatement(sizes.fewer_rows, sizes.days), sizes.days)
    many = _Cycle.of(lake.restatement(sizes.rows, sizes.days), sizes.days)
    _in_turn(many, few, sizes)
    text = f"{{}} of {sizes.rows:,} rows as fast as of {sizes.fewer_rows:,}"
    written = Result(
        name="publish-rows",
        promise=f"data files written by {2 * (sizes.warm_up + sizes.cycles)} publishes and as many undos",
        target="0",
        measured=str(few.written + many.written),
        held=few.written + many.written == 0,
    )
    return [written, *_both("publish-rows", text, AS_FAST, many, few)]


def measure_files(lake: Lake, sizes: Sizes) -> list[Result]:
    """Many files replaced by many, against few by few."""
    files, fewer = sizes.days * sizes.shards, sizes.days * sizes.fewer_shards
    many = _Cycle.of(lake.restatement(files * ROWS_A_FILE, sizes.days, sizes.shards), files)
    few = _Cycle.of(lake.restatement(fewer * ROWS_A_FILE, sizes.days, sizes.fewer_shards), fewer)
    _in_turn(many, few, sizes)
    return _both("publish-files", f"{{}} of {files:,} files against {fewer}", MANY_FILES, many, few)


def measure_others(lake: Lake, sizes: Sizes) -> list[Result]:
    """The same small change in a table with and without a long history."""
    files = sizes.days * sizes.fewer_shards
    crowded = lake.restatement(files * ROWS_A_FILE, sizes.days, sizes.fewer_shards, name="_crowded")
    append_other_files(crowded, sizes.other_files)
    alone = lake.restatement(files * ROWS_A_FILE, sizes.days, sizes.fewer_shards, name="_alone")
    among, few = _Cycle.of(crowded, files), _Cycle.of(alone, files)
    _in_turn(among, few, sizes)
    text = f"{{}} of {files} files beside {sizes.other_files:,} others in the table"
    return _both("publish-others", text, OTHER_FILES, among, few)


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


def _both(name: str, text: str, limit: float, one: _Cycle, other: _Cycle) -> list[Result]:
    return [
        ratio_result(name, text.format("publish"), limit, one.publish, other.publish),
        ratio_result(name, text.format("undo"), limit, one.undo, other.undo),
    ]
