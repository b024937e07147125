"""Whatever order things happen in: only a stage with a genuine, accepted, current verdict is ever published."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from backcast.control import ControlPlane
from backcast.errors import BackcastError
from backcast.model.pipeline import TableFormat
from backcast.model.run import Run
from backcast.model.stage import recorded_stage
from backcast.model.states import RunState, allowed
from backcast.model.verdict import Verdict
from backcast.testing.shop import Shop
from tests.e2e.test_publish import ON_BOTH, accepted

MOVES = 9
SEEDS = range(4)


@dataclass
class Hand:
    """Somebody with access to store and table, who tries to get a stage out that nobody accepted as it is."""

    shop: Shop
    control: ControlPlane
    run_id: str
    chance: random.Random
    genuine: dict[bytes, Verdict] = field(default_factory=dict)
    """Verdicts that validation itself gave."""
    tampered: str | None = None

    @property
    def run(self) -> Run:
        return self.control.world.store().runs.run(self.run_id)

    @property
    def newest(self) -> Verdict:
        verdict = self.control.world.store().runs.verdict(self.run_id)
        assert verdict is not None
        return verdict

    def save(self, verdict: Verdict) -> None:
        self.control.world.store().runs.save_verdict(verdict)

    def validate(self) -> None:
        verdict = self.control.validate(self.run_id)
        self.genuine[verdict.canonical()] = verdict

    def tamper_with_the_stage(self) -> None:
        """One more row behind validation's back."""
        events = self.control.world.reader().events(self.run_id)
        branch = recorded_stage(self.run_id, events).branch
        if self.shop.format is TableFormat.DELTA:
            folder = self.shop.root / "lake" / "revenue" / "_backcast" / branch
            table = f"delta.`{folder}`"
            self.shop.spark.sql(f"INSERT INTO {table} VALUES (DATE'2026-01-03', 'EVIL', 1, 1.00)")
            self.tampered = str(
                self.shop.spark.sql(f"DESCRIBE HISTORY {table}").agg({"version": "max"}).collect()[0][0]
            )
            return
        self.shop.spark.sql(
            f"INSERT INTO {self.shop.revenue}.branch_{branch} VALUES (DATE'2026-01-03', 'EVIL', 1, 1.00)"
        )
        refs = self.shop.spark.sql(f"SELECT snapshot_id FROM {self.shop.revenue}.refs WHERE name = '{branch}'")
        self.tampered = str(refs.collect()[0][0])

    def accept_what_was_tampered_with(self) -> None:
        if self.tampered is not None:
            self.save(self.newest.model_copy(update={"staged": self.tampered, "accepted": True}))

    def forge_a_check(self) -> None:
        """Accepted, says the verdict, and one of its blocking checks failed."""
        first, *others = self.newest.checks
        failed = (first.model_copy(update={"passed": False}), *others)
        self.save(self.newest.model_copy(update={"checks": failed, "accepted": True}))

    def forge_the_files(self) -> None:
        self.save(self.newest.model_copy(update={"net_change": "f" * 64}))

    def take_the_verdict_of_another_run(self) -> None:
        self.save(self.newest.model_copy(update={"run_id": "revenue-20260101-abcdef"}))

    def reject(self) -> None:
        self.save(self.newest.model_copy(update={"accepted": False}))

    def bring_an_old_verdict_back(self) -> None:
        self.save(self.chance.choice(list(self.genuine.values())))

    def force_a_state(self) -> None:
        """As a stale process might: along the table of states, without looking at any verdict."""
        wanted = self.chance.choice([RunState.STAGED, RunState.ACCEPTED, RunState.REJECTED, RunState.REVIEW])
        if allowed(self.run.state, wanted):
            detail = {"staged": next(iter(self.genuine.values())).staged} if wanted is RunState.STAGED else {}
            self.control.world.store().runs.transition(self.run, wanted, **detail)

    def undo(self) -> None:
        self.control.undo(self.run_id)


@ON_BOTH
@pytest.mark.parametrize("seed", SEEDS)
def test_no_order_of_events_publishes_what_was_not_validated(shop: Shop, seed: int) -> None:
    before = shop.rows()
    control, run_id = accepted(shop)
    restated = shop.expected("2026-01-03", "2026-01-05")
    hand = Hand(shop, control, run_id, random.Random(seed))  # noqa: S311 - a test repeats its moves
    hand.genuine[hand.newest.canonical()] = hand.newest
    moves: list[Callable[[], None]] = [
        hand.validate,
        hand.validate,
        hand.tamper_with_the_stage,
        hand.accept_what_was_tampered_with,
        hand.forge_a_check,
        hand.forge_the_files,
        hand.take_the_verdict_of_another_run,
        hand.reject,
        hand.bring_an_old_verdict_back,
        hand.force_a_state,
        hand.undo,
    ]
    visible = before
    for _ in range(MOVES):
        move = hand.chance.choice(moves)
        try:
            move()
            if move == hand.undo:
                visible = before
        except BackcastError:
            pass
        there = hand.run.state is RunState.PUBLISHED
        sound = hand.newest.accepted and hand.newest.canonical() in hand.genuine
        ready = hand.run.state in (RunState.ACCEPTED, RunState.UNDONE)
        try:
            control.publish(run_id)
        except BackcastError:
            published = False
        else:
            published, visible = True, restated
        assert published == (there or (sound and ready)), f"{seed}: after {move.__name__}"
        assert shop.rows() == visible, f"{seed}: after {move.__name__}"
