"""Whatever somebody does to store and stage, in whatever order: what validation accepted is published, as it is."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.control import ControlPlane
from backcast.demo.shell import in_process
from backcast.errors import BackcastError, Refused, StateConflict, Unavailable
from backcast.model.document import sha256
from backcast.model.evidence import VERDICT
from backcast.model.pipeline import TableFormat
from backcast.model.run import Run
from backcast.model.stage import recorded_stage, recorded_staged
from backcast.model.states import RunState
from backcast.model.verdict import Verdict
from backcast.testing.faults import at_point
from backcast.testing.shop import Shop
from tests.e2e.test_interrupted_publish import break_off
from tests.e2e.test_publish import ON_BOTH, WINDOW
from tests.e2e.test_restage import sale

NONE, FAILED = "has no accepted verdict", "was rejected"
AMENDED, OTHER = "the stage was amended after its verdict", "the stage is not the one that was validated"
BY_HAND, NOT_YET = "another verdict than its history tells", "cannot be published"


@dataclass
class Forger:
    """Somebody with access to store and table, who tries to get a stage out that nobody accepted as it is."""

    shop: Shop
    control: ControlPlane
    run_id: str
    chance: random.Random
    capsys: pytest.CaptureFixture[str]
    genuine: list[Verdict] = field(default_factory=list)
    """Verdicts that validation itself gave, of whatever stage."""
    staged: str = ""
    """What is really staged."""
    tried: set[str] = field(default_factory=set)

    @property
    def run(self) -> Run:
        return self.control.world.store().runs.run(self.run_id)

    def judge(self) -> None:
        """The honest way."""
        assert self.control.validate(self.run_id).accepted
        self.genuine.append(self.newest)
        self.staged = self.newest.staged

    @property
    def newest(self) -> Verdict:
        found = self.control.world.store().runs.verdict(self.run_id)
        assert found is not None
        return found

    def forge(self, **changes: object) -> None:
        self.save(self.genuine[-1].model_copy(update=changes))

    def save(self, verdict: Verdict) -> None:
        self.control.world.store().runs.save_verdict(verdict)

    def force(self, *states: RunState, staged: str | None = None) -> None:
        """As a stale process might, or one that died: along the table of states, without looking at any verdict."""
        for state in states:
            told = {"staged": staged or self.staged} if state is RunState.STAGED else {}
            self.control.world.store().runs.transition(self.run, state, **told)

    def execute(self, statement: str, *values: str) -> None:
        """With a tool of one's own."""
        with closing(sqlite3.connect(self.shop.root / ".backcast" / "store.db")) as store, store:
            assert store.execute(statement, values).rowcount == 1

    def tampered(self) -> str:
        """One more row on the stage, behind validation's back; the version that has it."""
        branch, spark = recorded_stage(self.run_id, self.control.logs(self.run_id)).branch, self.shop.spark
        row = "VALUES (DATE'2026-01-03', 'EVIL', 1, 1.00)"
        if self.shop.format is TableFormat.DELTA:
            table = f"delta.`{self.shop.root / 'lake' / 'revenue' / '_backcast' / branch}`"
            spark.sql(f"INSERT INTO {table} {row}")
            newest = spark.sql(f"DESCRIBE HISTORY {table}").agg({"version": "max"}).collect()[0][0]
            return f"{branch}@{newest}"
        spark.sql(f"INSERT INTO {self.shop.revenue}.branch_{branch} {row}")
        refs = spark.sql(f"SELECT snapshot_id FROM {self.shop.revenue}.refs WHERE name = '{branch}'")
        return str(refs.collect()[0][0])

    def verdict_of_a_changed_stage(self) -> None:
        self.forge(staged=self.tampered())

    def changed_stage_on_record(self) -> None:
        changed = self.tampered()
        self.force(RunState.STAGED, RunState.ACCEPTED, staged=changed)
        self.forge(staged=changed)

    def other_files(self) -> None:
        self.forge(net_change="f" * 64)

    def verdict_altered_in_the_store(self) -> None:
        newest = "(SELECT max(verdict_id) FROM verdicts WHERE run_id = ?)"
        self.forge(accepted=False)
        document = self.genuine[-1].canonical().decode()
        self.execute(f"UPDATE verdicts SET document = ? WHERE verdict_id = {newest}", document, self.run_id)

    def verdict_of_another_run(self) -> None:
        document = self.newest.model_copy(update={"run_id": "revenue-20260101-abcdef"}).canonical()
        self.execute("INSERT INTO verdicts (run_id, document) VALUES (?, ?)", self.run_id, document.decode())
        self.control.world.store().runs.record(self.run_id, VERDICT, document=sha256(document))

    def failed_blocking_rule(self) -> None:
        """Accepted, says the verdict, and one of its blocking checks failed."""
        first, *others = self.genuine[-1].checks
        self.forge(checks=(first.model_copy(update={"passed": False}), *others), accepted=True)

    def verdict_that_rejects(self) -> None:
        self.forge(accepted=False)

    def rejected_stage(self) -> None:
        self.force(RunState.STAGED, RunState.REJECTED)

    def verdict_of_an_older_stage(self) -> None:
        self.save(self.genuine[0])

    def refused(self, move: Callable[[], None], reason: str) -> None:
        """Through every door, for the reason of this very move; and then all is as it was before it."""
        head, back = self.shown, self.run.state
        move()
        if self.run.state is not RunState.REJECTED and self.chance.random() < 0.5:
            # As if a process had died in the middle of a publish that it should never have begun.
            self.force(RunState.PUBLISHING)
        self.try_every_door(reason, move.__name__)
        self.tried.add(move.__name__)
        assert self.shown == head, move.__name__
        if self.run.state is RunState.REJECTED or recorded_staged(self.control.logs(self.run_id)) != self.staged:
            self.force(RunState.STAGED, RunState.ACCEPTED)
        assert self.run.state is back, f"stuck after {move.__name__}"
        self.save(self.genuine[-1])

    def try_every_door(self, reason: str, move: str, code: int = Refused.exit_code) -> None:
        doors: list[Callable[[str], object]] = [self.control.publish, self.shop.open().publish]
        self.chance.shuffle(doors)
        for door in doors:
            with pytest.raises(BackcastError) as caught:
                door(self.run_id)
            assert reason in caught.value.message, move
        if self.run.state is not RunState.STAGED:
            # Of what is judged they leave the judgement as it is.
            for verb in (self.control.run, self.control.retry, self.control.work, self.control.approve):
                with suppress(BackcastError):
                    verb(self.run_id)
        with in_process(self.control):
            assert dispatch(["publish", self.run_id, "--yes", "--project", str(self.shop.root)]) == code, move
        assert reason in " ".join(self.capsys.readouterr().err.split()), move

    @property
    def shown(self) -> str | None:
        """What readers see."""
        return self.control.world.target("revenue").facts().version


@ON_BOTH
@pytest.mark.parametrize("number", [0, 1])
def test_no_order_of_events_publishes_what_was_not_validated(
    shop: Shop, number: int, lake_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop.configure(lake_root, live="restage", chunks_per_job=1)
    before, control = shop.rows(), shop.open()
    run_id = control.plan(shop.request(*WINDOW)).run_id
    forger = Forger(shop, control, run_id, random.Random(number), capsys)  # noqa: S311 - a test repeats its moves
    with pytest.raises(Unavailable), at_point("validate.before-verdict", break_off):
        control.run(run_id)
    forger.try_every_door(NOT_YET, "staged, not validated", StateConflict.exit_code)
    forger.force(RunState.ACCEPTED, *[RunState.PUBLISHING][:number])
    forger.try_every_door(NONE, "unvalidated, and said to be accepted")
    forger.judge()

    anywhere = [
        (forger.verdict_of_a_changed_stage, AMENDED),
        (forger.other_files, OTHER),
        (forger.verdict_altered_in_the_store, BY_HAND),
        (forger.verdict_of_another_run, NONE),
        (forger.failed_blocking_rule, NONE),
        (forger.verdict_that_rejects, NONE),
    ]
    moves = [*anywhere, (forger.changed_stage_on_record, OTHER), (forger.rejected_stage, FAILED)]
    forger.chance.shuffle(moves)
    for move, reason in moves[:4]:
        forger.refused(move, reason)

    live = sale(shop, "2026-01-04", "NEW")
    wanted = shop.expected(*WINDOW)
    assert wanted[live] == 1
    with pytest.raises(Unavailable), at_point("validate.before-verdict", break_off):
        control.publish(run_id)
    forger.force(RunState.ACCEPTED)
    forger.try_every_door(AMENDED, "the verdict is that of the stage before")
    forger.judge()
    for move, reason in [*moves[4:], (forger.verdict_of_an_older_stage, AMENDED)]:
        forger.refused(move, reason)
    assert forger.tried == {move.__name__ for move, _ in (*moves, (forger.verdict_of_an_older_stage, AMENDED))}
    assert shop.rows() == before + type(before)([live])

    if number:
        control.publish(run_id)
        control.undo(run_id)
        for move, reason in forger.chance.sample(anywhere, 2):
            forger.refused(move, reason)
        assert shop.rows() == before + type(before)([live])
    control.publish(run_id)
    assert shop.rows() == wanted
    assert len(control.world.reader().publications(run_id)) == 1 + number
