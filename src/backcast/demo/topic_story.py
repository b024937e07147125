"""The second part: a live stream has a bug, a check finds it, and a day is restated while the stream runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from backcast.demo.lake import Lake
from backcast.demo.narrator import ClaimBroken, Narrator
from backcast.demo.orders import GROWN, Order, history, records
from backcast.demo.shell import expect, in_process
from backcast.demo.stream import Stream, Tills, ends_of
from backcast.demo.topic import DATASET, ORDERS, RIGHT_LINE, STREAM, TOPIC, WRONG_LINE, Groups, OrdersTopic
from backcast.model.log import Ranges, span
from backcast.model.verdict import Verdict
from backcast.project.api import open_project
from backcast.testing.kafka import kafka_broker
from backcast.testing.kafka_records import Position

if TYPE_CHECKING:
    from backcast.control import ControlPlane
    from backcast.model.live import StreamStatus

_DAYS = 2
"""Of orders that were in the topic before today's."""
FATES = ("in the window", "outside it", "quarantined")
"""What becomes of an offset, in the words of a verdict."""


@dataclass(frozen=True, slots=True)
class TopicTally:
    """What the second part comes to."""

    written: int
    lost: int
    doubled: int
    offsets: int


@dataclass(frozen=True, slots=True)
class Past:
    """What the topic held before the story began, and where the broker put it."""

    day: date
    """Yesterday: the one that went wrong."""
    orders: list[Order]
    places: dict[Position, Order | None]
    """None: the record that is no order."""

    def of(self, day: date) -> list[Order]:
        return [each for each in self.orders if each.at.date() == day]

    def fate(self, place: Position) -> str:
        """What a replay of the day must say about an offset. Later ones hold live orders."""
        order = self.places.get(place, self.orders[0])
        inside, outside, quarantined = FATES
        if order is None:
            return quarantined
        return inside if order.at.date() == self.day else outside


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything on stage."""

    topic: OrdersTopic
    past: Past
    tills: Tills
    stream: Stream
    narrator: Narrator

    @property
    def bad_day(self) -> date:
        return self.past.day


def tell(lake: Lake, narrator: Narrator) -> TopicTally:
    """Raises ClaimBroken when the product does not keep a promise."""
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    with ExitStack() as stack:
        topic = OrdersTopic.create(lake, stack.enter_context(kafka_broker()), yesterday)
        os.chdir(topic.root)
        past = _fill(topic, yesterday)
        scene = Scene(topic, past, Tills(topic, len(past.orders)), Stream(topic, narrator), narrator)
        stack.callback(scene.stream.end)
        stack.callback(scene.tills.stop)
        groups = topic.groups()
        _a_wrong_day(scene)
        _mend(scene)
        offsets = _restate(scene)
        return _tally(scene, groups, offsets)


def _fill(topic: OrdersTopic, day: date) -> Past:
    """Two days of orders that end with this one, on which a shop got a second till."""
    orders = history(day - timedelta(days=_DAYS - 1), _DAYS, grown=day)
    sent = list(records(orders, broken_on=day))
    positions = topic.broker.produce(TOPIC, sent)
    topic.bill()
    keys = {str(each.id): each for each in orders}
    found = dict(zip(positions, (keys.get(str(each.key)) for each in sent), strict=True))
    return Past(day, orders, found)


def _a_wrong_day(scene: Scene) -> None:
    topic, narrator, day = scene.topic, scene.narrator, scene.bad_day
    narrator.chapter("A stream writes what a topic brings, and a check finds a wrong day")
    narrator.say(
        f"""The tills of four shops send their orders to the Kafka topic `{TOPIC}`. A stream, which is a process with a
        Spark of its own, appends every order to {ORDERS}; billing reads the topic too, with a consumer group of its
        own. The shops are still closed: the stream reads what yesterday and the day before have left."""
    )
    scene.stream.start()
    scene.stream.catch_up()
    narrator.say("Before the shops open, somebody looks whether the table is as it should be:")
    with _open(scene):
        expect(narrator, 3, "check", DATASET)
    narrator.say(f"It is not, and nothing had failed. Yesterday {GROWN} got a second till. Revenue, shop by shop:")
    narrator.show(*topic.revenue((day - timedelta(days=1), day)))
    print()
    orders, now = scene.past.orders, topic.rows()
    narrator.prove(
        f"the stream wrote every order once, and those of {GROWN} on {day} twice",
        now == Counter(row for each in orders for row in each.wrong_rows) != Counter(each.row for each in orders),
        f"{now.total()} rows",
    )


def _mend(scene: Scene) -> None:
    narrator = scene.narrator
    narrator.chapter("Mend the code; but a stream only goes forward")
    narrator.say(
        """Version 1.0.0 of models/orders.sql looks up at which counter a till stands. It was written when no shop had
        two of them, and takes every till that the shop had by then. Version 1.1.0 asks for the till of the order:"""
    )
    narrator.show(f"- {WRONG_LINE}", f"+ {RIGHT_LINE}")
    scene.stream.stop()
    scene.topic.deploy("1.1.0", RIGHT_LINE)
    scene.stream.start()
    narrator.say(
        """It goes on behind its last batch, and from now on it is right. The shops open: their tills send a few orders
        every second and the stream writes them, until the end. But what it wrote yesterday stays wrong."""
    )
    scene.tills.open()
    scene.stream.catch_up()


def _restate(scene: Scene) -> int:
    """The number of offsets that were read."""
    narrator, day, stream = scene.narrator, scene.bad_day, scene.stream
    narrator.chapter("Restate that day from the topic, while the stream runs")
    before = stream.status()
    window = ("--from", str(day), "--to", str(day + timedelta(days=1)))
    with _open(scene) as control:
        expect(narrator, 0, "stream", "backfill", STREAM, *window, "--reason", f"{GROWN} has two tills", "--yes")
        run_id = control.list(limit=1)[0].run_id
        narrator.say("One record could not be read at all. The stream had set it aside, and so did the run:")
        expect(narrator, 0, "quarantine", "show", run_id)
        print()
        pin = next((each.log for each in control.status(run_id).manifest.inputs if each.log), None)
        verdict = control.world.reader().verdict(run_id)
    if pin is None or verdict is None:
        raise ClaimBroken("the plan pins offsets and the run has a verdict")
    _prove_offsets(scene, pin.ranges, verdict)
    right = Counter(each.row for each in scene.past.of(day))
    narrator.prove(f"{day} is right, row by row: {right.total():,} orders", scene.topic.rows(_on(day)) == right)
    others = Counter(each.row for each in scene.past.of(day - timedelta(days=1)))
    narrator.prove("the day before is as it was", scene.topic.rows(_on(day - timedelta(days=1))) == others)
    _prove_it_ran_on(scene, before, stream.status())
    return span(pin.ranges)


def _prove_it_ran_on(scene: Scene, before: StreamStatus, after: StreamStatus) -> None:
    """The same process, without an end in between."""
    batches = after.batches[0].batch - before.batches[0].batch
    scene.narrator.prove(
        f"the stream was not stopped for it: the same process wrote {batches} batches meanwhile",
        after.alive and before.lease is not None and after.lease is not None and batches > 0
        and before.lease.holder == after.lease.holder,
        f"it is {after.state}",
    )  # fmt: skip


def _prove_offsets(scene: Scene, ranges: Ranges, verdict: Verdict) -> None:
    """The verdict says of every pinned offset what we know of it ourselves."""
    places = (Position(each.partition, offset) for each in ranges for offset in range(each.start, each.end))
    ours = Counter(map(scene.past.fate, places))
    said = [f"{ours[fate]:,} {fate}" for fate in FATES if ours[fate]]
    check = next(each for each in verdict.checks if each.name.startswith("offsets of "))
    scene.narrator.prove(
        f"all {span(ranges):,} offsets are accounted for: {', '.join(said)}",
        check.passed and check.detail.endswith(": " + ", ".join(said)),
        check.detail,
    )


def _tally(scene: Scene, groups: Groups, offsets: int) -> TopicTally:
    narrator, topic, stream = scene.narrator, scene.topic, scene.stream
    narrator.chapter("Closing time: stop the stream, and count")
    scene.tills.stop()
    narrator.say("The tills close. The stream writes what is still on its way, and is stopped behind its last batch.")
    stream.catch_up()
    stream.stop()
    with _open(scene):
        expect(narrator, 0, "check", DATASET)
    print()
    narrator.prove("the tills never failed", scene.tills.failure is None, str(scene.tills.failure))
    ended, ends = stream.status(), topic.broker.end_offsets(TOPIC)
    narrator.prove("the stream stopped where the topic ends", ended.state == "stopped" and ends_of(ended) == ends)
    orders = [*scene.past.orders, *scene.tills.sent]
    expected, now = Counter(each.row for each in orders), topic.rows()
    lost, doubled = (expected - now).total(), (now - expected).total()
    narrator.prove(
        f"topic and table agree: {len(orders):,} orders, {len(scene.tills.sent)} of them live; none lost, none doubled",
        not lost and not doubled,
        f"{lost} lost, {doubled} too many",
    )
    narrator.prove("nothing was written to the topic but by the tills", sum(ends.values()) == len(orders) + 1)
    after = topic.groups()
    narrator.prove(f"every consumer group stands where it stood: {', '.join(groups)}", after == groups, str(after))
    return TopicTally(len(scene.tills.sent), lost, doubled, offsets)


@contextmanager
def _open(scene: Scene) -> Iterator[ControlPlane]:
    """The project as it is deployed now; commands inside share the Spark of the story."""
    control = open_project(scene.topic.root)
    try:
        with in_process(control):
            yield control
    finally:
        control.world.close()


def _on(day: date) -> str:
    return f"day = DATE'{day}'"
