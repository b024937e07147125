"""Whatever order things happen in: only a stage with a genuine, accepted, current verdict is ever published."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from backcast.control import ControlPlane
from backcast.errors import BackcastError, Unavailable
from backcast.model.pipeline import TableFormat
from backcast.model.run import Run
from backcast.model.stage import recorded_stage, recorded_staged
from backcast.model.states import RunState, allowed
from backcast.model.verdict import Verdict
from backcast.testing.faults import at_point
from backcast.testing.shop import Shop
from tests.e2e.test_interrupted_publish import break_off
from tests.e2e.test_publish import ON_BOTH, WINDOW, accepted
from tests.e2e.test_rules import declare

MOVES = 9
STARTS = ("accepted", "accepted", "without a verdict", "rejected by a rule")
"""What the run is at first; the number of each is what chance begins with."""


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
    def newest(self) -> Verdict | None:
        return self.control.world.store().runs.verdict(self.run_id)

    def forge(self, **changes: object) -> None:
        if self.newest is not None:
            self.save(self.newest.model_copy(update=changes))

    def save(self, verdict: Verdict) -> None:
        self.control.world.store().runs.save_verdict(verdict)

    def judged(self, verb: Callable[[str], object]) -> None:
        """A verdict that the product itself gives meanwhile is genuine."""
        before = self.newest
        try:
            verb(self.run_id)
        finally:
            if self.newest is not None and self.newest != before:
                self.genuine[self.newest.canonical()] = self.newest

    def validate(self) -> None:
        self.judged(self.control.validate)

    def run_on(self) -> None:
        self.judged(self.control.run)

    def retry(self) -> None:
        self.judged(self.control.retry)

    def work(self) -> None:
        self.judged(self.control.work)

    def approve(self) -> None:
        self.control.approve(self.run_id, comment="looks fine")

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
            self.forge(staged=self.tampered, accepted=True)

    def forge_a_check(self) -> None:
        """Accepted, says the verdict, and one of its blocking checks failed."""
        checks = () if self.newest is None else self.newest.checks
        self.forge(checks=tuple(each.model_copy(update={"passed": False}) for each in checks), accepted=True)

    def forge_the_files(self) -> None:
        self.forge(net_change="f" * 64)

    def take_the_verdict_of_another_run(self) -> None:
        self.forge(run_id="revenue-20260101-abcdef")

    def say_it_is_accepted(self) -> None:
        self.forge(accepted=True)

    def reject(self) -> None:
        self.forge(accepted=False)

    def bring_an_old_verdict_back(self) -> None:
        if self.genuine:
            self.save(self.chance.choice(list(self.genuine.values())))

    def force_a_state(self) -> None:
        """As a stale process might, or one that died: along the table of states, without looking at any verdict."""
        states = (RunState.STAGED, RunState.ACCEPTED, RunState.REJECTED, RunState.REVIEW, RunState.PUBLISHING)
        wanted = self.chance.choice(states)
        if allowed(self.run.state, wanted):
            staged = recorded_staged(self.control.logs(self.run_id))
            detail = {"staged": staged} if wanted is RunState.STAGED else {}
            self.control.world.store().runs.transition(self.run, wanted, **detail)

    def undo(self) -> None:
        self.control.undo(self.run_id)


def started(shop: Shop, start: str) -> tuple[ControlPlane, str]:
    if start == "accepted":
        return accepted(shop)
    if start == "rejected by a rule":
        declare(shop, "rules:\n  - range: {column: sales, max: 9}")
    control = shop.open()
    run_id = control.plan(shop.request(*WINDOW)).run_id
    if start == "rejected by a rule":
        assert control.run(run_id).state is RunState.REJECTED
    else:
        with pytest.raises(Unavailable), at_point("validate.before-verdict", break_off):
            control.run(run_id)
        assert control.status(run_id).run.state is RunState.STAGED
    return control, run_id


@ON_BOTH
@pytest.mark.parametrize(("number", "start"), list(enumerate(STARTS)))
def test_no_order_of_events_publishes_what_was_not_validated(shop: Shop, number: int, start: str) -> None:
    before = shop.rows()
    control, run_id = started(shop, start)
    restated = shop.expected(*WINDOW)
    hand = Hand(shop, control, run_id, random.Random(number))  # noqa: S311 - a test repeats its moves
    if hand.newest is not None:
        hand.genuine[hand.newest.canonical()] = hand.newest
    moves: list[Callable[[], None]] = [
        hand.validate,
        hand.run_on,
        hand.retry,
        hand.work,
        hand.approve,
        hand.say_it_is_accepted,
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
        newest = hand.newest
        sound = newest is not None and newest.accepted and newest.canonical() in hand.genuine
        ready = hand.run.state in (RunState.ACCEPTED, RunState.UNDONE, RunState.PUBLISHING)
        try:
            control.publish(run_id)
        except BackcastError:
            published = False
        else:
            published, visible = True, restated
        assert published == (there or (sound and ready)), f"{number}: after {move.__name__}"
        assert hand.run.state is not RunState.PUBLISHING, f"{number}: stuck after {move.__name__}"
        assert shop.rows() == visible, f"{number}: after {move.__name__}"
