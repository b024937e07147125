"""Promise: a run costs little more than the same job written by hand.

`run` stages with counts and digest and validates the stage from what was observed; a key is one more job.
"""

from __future__ import annotations

from backcast.control import ControlPlane
from backcast.model.stage import stage_of
from backcast.model.states import RunState
from bench.lake import Lake, Restatement
from bench.measure import Contender, alternate
from bench.promise import Result, Sizes, ratio_result

LIMIT, LIMIT_WITH_KEY = 1.15, 1.6


class _Run:
    """A planned run that is staged and validated, then given up, so that the next one finds the table as it was."""

    def __init__(self, restatement: Restatement, control: ControlPlane, pipeline: str) -> None:
        self._restatement, self._control, self._pipeline = restatement, control, pipeline
        self._run_id = ""

    def contender(self) -> Contender:
        return Contender(work=self._work, before=self._plan, after=self._end)

    def _plan(self) -> None:
        self._run_id = self._restatement.planned(self._control, self._pipeline)

    def _work(self) -> None:
        run = self._control.run(self._run_id)
        assert run.state is RunState.ACCEPTED, run.detail

    def _end(self) -> None:
        """Whatever is compared must be the same work: as many rows, with the same sum, as the job by hand wrote."""
        branch = stage_of(self._run_id, None).branch
        staged = self._restatement.checksum(self._restatement.facts, f"`branch_{branch}`")
        assert staged == self._restatement.checksum(self._restatement.by_hand), staged
        self._control.cancel(self._run_id)


def measure(lake: Lake, sizes: Sizes) -> list[Result]:
    """One job by hand, one run without and one with a key, in turn."""
    restatement = lake.restatement(sizes.rows, sizes.days)
    control = restatement.control()
    plain, keyed = (_Run(restatement, control, name) for name in ("facts", "keyed_facts"))
    pinned = restatement.head(restatement.events)
    restatement.job_by_hand(pinned)
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
    by_hand = samples["by hand"]
    rows = f"{sizes.rows:,} rows in scope, against the same job by hand"
    return [
        ratio_result("run", f"run with counts and digest, {rows}", LIMIT, samples["run"], by_hand),
        ratio_result(
            "run", "the same, and keys checked for uniqueness", LIMIT_WITH_KEY, samples["run with key"], by_hand
        ),
    ]
