"""Promise: a run costs little more than the same job written by hand.

`run` stages with counts and digest and validates the stage from what was observed; a key is one more job.
"""

from __future__ import annotations

from backcast.control import ControlPlane
from backcast.model.pipeline import TableFormat
from backcast.model.stage import stage_of
from backcast.model.states import RunState
from bench.lake import Lake
from bench.measure import Contender, alternate
from bench.promise import Result, Sizes, ratio_result
from bench.restatement import Restatement
from bench.tables import Shape

LIMIT, LIMIT_WITH_KEY = 1.15, 1.6


class StagedRun:
    """A planned run that is staged and validated, then given up, so that the next one finds the table as it was."""

    def __init__(self, restatement: Restatement, control: ControlPlane, pipeline: str) -> None:
        self._restatement, self._control, self._pipeline = restatement, control, pipeline
        self._run_id, self._expected = "", restatement.expected()
        self.chunks, self.commits = 0, 0
        """Of the newest run."""

    def contender(self) -> Contender:
        return Contender(work=self._work, before=self._plan, after=self._end)

    def _plan(self) -> None:
        self._run_id = self._restatement.planned(self._control, self._pipeline)

    def _work(self) -> None:
        run = self._control.run(self._run_id)
        assert run.state is RunState.ACCEPTED, run.detail

    def _end(self) -> None:
        """Whatever is compared must be the same work: as many rows, with the same sums."""
        restatement, reader = self._restatement, self._control.world.reader()
        branch = stage_of(self._run_id, None).branch
        staged = restatement.checksum(restatement.tables.staged("facts", branch))
        assert staged == self._expected, staged
        self.chunks, self.commits = len(reader.chunks(self._run_id)), len(reader.stage_records(self._run_id))
        self._control.cancel(self._run_id)


def measure(lake: Lake, table_format: TableFormat, sizes: Sizes) -> list[Result]:
    """One job by hand, one run without and one with a key, in turn."""
    restatement = lake.restatement(table_format, Shape(sizes.rows, sizes.days))
    control = restatement.control()
    plain, keyed = (StagedRun(restatement, control, name) for name in ("facts", "keyed_facts"))
    pinned = restatement.prepare_by_hand()
    samples = alternate(
        {
            "by hand": Contender(work=lambda: restatement.job_by_hand(pinned)),
            "run": plain.contender(),
            "run with key": keyed.contender(),
        },
        rounds=sizes.pairs,
        warm_up=sizes.warm_up,
    )
    control.world.close()
    assert restatement.checksum(restatement.tables.name("by_hand")) == restatement.expected()
    by_hand = samples["by hand"]
    rows = f"{sizes.rows:,} rows in scope, against the same job by hand"
    return [
        ratio_result("run", f"run with counts and digest, {rows}", LIMIT, samples["run"], by_hand),
        ratio_result(
            "run", "the same, and keys checked for uniqueness", LIMIT_WITH_KEY, samples["run with key"], by_hand
        ),
    ]
