"""Promise: a run costs little more than the same job written by hand."""

from __future__ import annotations

from backcast.control import ControlPlane
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
        self.staging: list[float] = []

    def contender(self) -> Contender:
        return Contender(work=self._work, before=self._plan, after=self._cancel)

    def _plan(self) -> None:
        self._run_id = self._restatement.planned(self._control, self._pipeline)

    def _work(self) -> None:
        run = self._control.run(self._run_id)
        assert run.state is RunState.ACCEPTED, run.detail

    def _cancel(self) -> None:
        records = self._control.world.reader().stage_records(self._run_id)
        self.staging.append(sum(record.seconds for record in records))
        self._control.cancel(self._run_id)


def measure(lake: Lake, sizes: Sizes) -> list[Result]:
    """One job by hand, one run without and one with a key, in turn. What is timed of a run includes its validation."""
    restatement = lake.restatement(sizes.rows, sizes.days)
    control = restatement.control()
    plain, keyed = (_Run(restatement, control, name) for name in ("facts", "keyed_facts"))
    pinned = restatement.head(restatement.events)
    by_hand = Contender(work=lambda: restatement.job_by_hand(pinned))
    seconds = alternate(
        {"by hand": by_hand, "run": plain.contender(), "run with key": keyed.contender()}, rounds=sizes.pairs
    )
    control.world.close()
    facts = {"rows": sizes.rows, "days": sizes.days}
    return [
        ratio_result(
            "run",
            f"run with counts and digest, {sizes.rows:,} rows in scope, against the same job by hand",
            LIMIT,
            seconds["run"],
            seconds["by hand"],
            staging_seconds=plain.staging[-sizes.pairs :],
            **facts,
        ),
        ratio_result(
            "run",
            "the same, and keys checked for uniqueness",
            LIMIT_WITH_KEY,
            seconds["run with key"],
            seconds["by hand"],
            staging_seconds=keyed.staging[-sizes.pairs :],
            **facts,
        ),
    ]
