"""The first part: a table is mended beside a live writer; a worse mending is stopped; the first is undone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from backcast.demo.lake import TABLE, Lake, Row
from backcast.demo.live import LiveWriter, Reader
from backcast.demo.narrator import Narrator
from backcast.demo.shell import expect, in_process, killed_half_way, variable
from backcast.model.states import RunState
from backcast.project.api import open_project

if TYPE_CHECKING:
    from backcast.control import ControlPlane

JANUARY = ("--from", "2026-01-01", "--to", "2026-02-01")
_CHUNKS_PER_JOB = "BACKCAST__PIPELINES__DAILY__CHUNKS_PER_JOB"


@dataclass(frozen=True, slots=True)
class TableTally:
    """What the first part comes to."""

    run_id: str
    written: int
    lost: int
    doubled: int
    looks: int
    seen: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything on stage."""

    lake: Lake
    control: ControlPlane
    writer: LiveWriter
    reader: Reader
    narrator: Narrator

    def newest(self) -> str:
        return self.control.list(limit=1)[0].run_id

    def prove_table(self, january: Counter[Row], claim: str) -> None:
        """The table holds January as given and every row of the live writer: none less, none twice."""
        with self.writer.between_commits() as live:
            now = self.lake.now()
        lost, extra = (january + live) - now, now - (january + live)
        self.narrator.prove(
            f"{claim}: {january.total()} rows of January and all {live.total()} live rows, none lost, none doubled",
            not lost and not extra,
            f"{lost.total()} lost, {extra.total()} too many",
        )


def tell(lake: Lake, narrator: Narrator) -> TableTally:
    """Raises ClaimBroken when the product does not keep a promise."""
    # Several small commits, so that a run has a middle in which it can be killed.
    with variable(_CHUNKS_PER_JOB, "4"):
        control = open_project(lake.root)
        scene = Scene(lake, control, LiveWriter(lake), Reader(lake), narrator)
        try:
            with in_process(control):
                _the_bug(scene)
                run_id = _plan(scene)
                _run_and_die(scene, run_id)
                _publish(scene, run_id)
                _worse(scene)
                _take_back(scene, run_id)
            return _tally(scene, run_id)
        finally:
            scene.writer.stop()
            scene.reader.stop()
            control.world.close()


def _the_bug(scene: Scene) -> None:
    say = scene.narrator.say
    scene.narrator.chapter("A table that people trust is wrong")
    say(
        f"""`backcast init` wrote a small project into {scene.lake.root.parent.name}/shop. Its table {TABLE} holds the
        revenue of four shops, day by day. Version 1.0.0 of the code added refunds to the revenue as if they were
        sales. Version 1.1.0, in pipelines/daily.py, takes them off. January still shows the wrong numbers:"""
    )
    scene.narrator.show(*(f"{city:<8}{amount:>14}" for city, amount in scene.lake.revenue_by_city().items()))
    scene.writer.start()
    scene.reader.start()
    say(
        """Meanwhile a live writer appends a row about every second, and a reader looks at the table all the time. Both
        go on until the end; neither knows about Backcast."""
    )


def _plan(scene: Scene) -> str:
    scene.narrator.chapter("Plan: see what would happen; nothing is touched")
    expect(scene.narrator, 0, "plan", "daily", *JANUARY, "--reason", "refunds were counted as sales")
    scene.narrator.say(
        """The inputs are pinned to a snapshot and the code to its hashes: what you just read is what will run, or it is
        refused."""
    )
    return scene.newest()


def _run_and_die(scene: Scene, run_id: str) -> None:
    scene.narrator.chapter("Run: compute into a hidden stage, and survive kill -9")
    scene.narrator.say("The chunks go to a branch of the table that no reader sees. In the middle we kill the process.")
    print(f"\n$ backcast run {run_id}", flush=True)
    pid, staged = killed_half_way(scene.control, run_id, scene.lake.root / ".backcast" / "killed.log")
    print(f"  ... 4 days per commit ...\n\n$ kill -9 {pid}", flush=True)
    total = len(scene.control.status(run_id).manifest.chunks)
    scene.narrator.say(f"Dead, with {staged} of {total} days staged. The same command goes on with the rest:")
    before = {chunk.chunk_id: chunk.attempts for chunk in scene.control.world.reader().chunks(run_id)}
    expect(scene.narrator, 0, "run", run_id)
    after = {chunk.chunk_id: chunk.attempts for chunk in scene.control.world.reader().chunks(run_id)}
    kept = sum(1 for name, attempts in after.items() if before[name] == attempts)
    print()
    scene.narrator.prove(f"{kept} days were not computed again", 0 < staged <= kept < total, f"{staged} were staged")
    scene.prove_table(scene.lake.wrong, "readers still see the table as it was")


def _publish(scene: Scene, run_id: str) -> None:
    scene.narrator.chapter("Diff, then publish: one commit, beside the live writer")
    expect(scene.narrator, 0, "diff", run_id)
    scene.narrator.say("Every day changes, no row comes or goes. That is what we wanted, so:")
    before = scene.writer.written.total()
    expect(scene.narrator, 0, "publish", run_id)
    scene.narrator.show(*(f"{city:<8}{amount:>14}" for city, amount in scene.lake.revenue_by_city().items()))
    print()
    scene.prove_table(scene.lake.right, "the table is right")
    arrived = scene.writer.written.total() - before
    scene.narrator.prove("the live writer was never stopped", scene.writer.failure is None, str(scene.writer.failure))
    scene.narrator.say(
        f"{arrived} live rows arrived while that happened. The commit wrote no data file: it took seconds."
    )


def _worse(scene: Scene) -> None:
    scene.narrator.chapter("A worse restatement: validation stops it")
    scene.narrator.say(
        """Somebody enters Lyon twice in the table of shops. The next restatement joins with it, so that Lyon's days
        come out twice."""
    )
    scene.lake.spark.sql("INSERT INTO lake.shop.shops VALUES (1, 'Lyon')")
    expect(
        scene.narrator,
        0,
        "plan",
        "daily",
        "--from",
        "2026-01-10",
        "--to",
        "2026-01-13",
        "--reason",
        "one more correction",
    )
    bad = scene.newest()
    expect(scene.narrator, 3, "run", bad)
    expect(scene.narrator, 3, "publish", bad)
    print()
    state = scene.control.status(bad).run.state
    scene.narrator.prove("the run was rejected and cannot be published", state is RunState.REJECTED, str(state))
    scene.prove_table(scene.lake.right, "readers never saw it")
    expect(scene.narrator, 0, "cancel", bad)


def _take_back(scene: Scene, run_id: str) -> None:
    scene.narrator.chapter("Undo: take it back, and keep what arrived since")
    scene.narrator.say(
        """The owner wants the old January back for now. Since the publish the live writer went on, and a late sale of
        15 January came in: right inside the restated window. A rollback of the table would throw all of that away."""
    )
    scene.writer.append_late(date(2026, 1, 15))
    expect(scene.narrator, 0, "undo", run_id)
    print()
    scene.prove_table(scene.lake.wrong, "January is back as it was")


def _tally(scene: Scene, run_id: str) -> TableTally:
    narrator, reader = scene.narrator, scene.reader
    reader.look_again()
    scene.writer.stop()
    reader.stop()
    for each in (scene.writer, reader):
        narrator.prove(f"the {each.words} never failed", each.failure is None, str(each.failure))
    now, expected = scene.lake.now(), scene.lake.wrong + scene.writer.written
    lost, doubled = (expected - now).total() + reader.lost, (now - expected).total()
    narrator.prove("no row was lost or doubled", not lost and not doubled, f"{lost} lost, {doubled} doubled")
    seen = " -> ".join(reader.seen)
    narrator.prove("every look showed January all wrong or all right", seen == "wrong -> right -> wrong", seen)
    return TableTally(run_id, scene.writer.written.total(), lost, doubled, reader.looks, tuple(reader.seen))
