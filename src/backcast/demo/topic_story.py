"""The second part: a stream got a day wrong; that day is replayed out of the topic while the stream goes on."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

from backcast.demo.lake import Lake
from backcast.demo.narrator import ClaimBroken, Narrator
from backcast.demo.orders import CHANGED, Order, history, records
from backcast.demo.shell import expect, in_process
from backcast.demo.stream import Stream, Tills
from backcast.demo.topic import ORDERS, RIGHT_LINE, TOPIC, WRONG_LINE, Groups, OrdersTopic
from backcast.model.log import Ranges, span
from backcast.model.verdict import Verdict
from backcast.project.api import open_project
from backcast.testing.kafka import kafka_broker
from backcast.testing.kafka_records import Position

if TYPE_CHECKING:
    from backcast.control import ControlPlane

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
    with ExitStack() as stack:
        topic = OrdersTopic.create(lake, stack.enter_context(kafka_broker()))
        os.chdir(topic.root)
        past = _fill(topic, datetime.now(UTC).date() - timedelta(days=1))
        scene = Scene(topic, past, Tills(topic, len(past.orders)), Stream(topic), narrator)
        stack.callback(scene.stream.stop)
        stack.callback(scene.tills.stop)
        _a_wrong_day(scene)
        groups = topic.groups()
        control = open_project(topic.root)
        stack.callback(control.world.close)
        with in_process(control):
            run_id = _plan(scene, control)
            offsets = _replay(scene, control, run_id)
            _publish(scene, run_id)
        return _tally(scene, groups, offsets)


def _fill(topic: OrdersTopic, day: date) -> Past:
    """Two days of orders that end with this one, on which the till of a shop changed."""
    orders = history(day - timedelta(days=_DAYS - 1), _DAYS, new_till=day)
    sent = list(records(orders, broken_on=day))
    positions = topic.broker.produce(TOPIC, sent)
    topic.bill()
    keys = {str(each.id): each for each in orders}
    found = dict(zip(positions, (keys.get(str(each.key)) for each in sent), strict=True))
    return Past(day, orders, found)


def _a_wrong_day(scene: Scene) -> None:
    topic, narrator, day = scene.topic, scene.narrator, scene.bad_day
    narrator.chapter("A stream writes what a topic brings, and gets a day wrong")
    narrator.say(
        f"""The tills of four shops send their orders to the Kafka topic `{TOPIC}`. A Spark stream reads it and appends
        every order to {ORDERS}; billing reads it too, with a consumer group of its own. Yesterday {CHANGED} got a new
        till, which sends cents. Version 1.0.0 of models/orders.sql takes them for euros:"""
    )
    scene.stream.start()
    scene.stream.catch_up()
    narrator.show(*topic.revenue((day - timedelta(days=1), day)))
    print()
    orders, now = scene.past.orders, topic.rows()
    narrator.prove(
        f"the stream wrote every order, and those of {CHANGED} on {day} are wrong",
        now == Counter(each.wrong_row for each in orders) != Counter(each.row for each in orders),
        scene.stream.failure,
    )
    scene.stream.stop()
    topic.deploy("1.1.0", RIGHT_LINE)
    narrator.say("Version 1.1.0 looks at the unit, and the stream is started again with it, from its checkpoint:")
    narrator.show(f"- {WRONG_LINE}", f"+ {RIGHT_LINE}")
    scene.stream.start()
    scene.tills.start()
    narrator.say(
        """From now on it is right. The tills send a few orders every second and the stream writes them, until the end.
        But a stream only goes forward: what it wrote yesterday stays wrong."""
    )


def _plan(scene: Scene, control: ControlPlane) -> str:
    narrator, day = scene.narrator, scene.bad_day
    narrator.chapter("Which offsets hold that day? Plan to read them, and no others")
    expect(narrator, 0, "kafka", "window", TOPIC, "--event-time", f"{day}..{day + timedelta(days=1)}")
    narrator.say(
        """Brokers know when a record was written, not when its order was made: some came minutes late. And one record
        cannot be read at all; the stream left it out without a word."""
    )
    expect(narrator, 0, "plan", "orders", "--on", str(day), "--reason", f"{CHANGED} sends cents")
    narrator.say(
        "These offsets are literal numbers in the plan. What comes into the topic from now on changes nothing."
    )
    return control.list(limit=1)[0].run_id


def _replay(scene: Scene, control: ControlPlane, run_id: str) -> int:
    """The number of offsets that were read."""
    narrator = scene.narrator
    narrator.chapter("Run: replay them beside the stream, and account for every offset")
    before = scene.stream.batches
    expect(narrator, 0, "run", run_id)
    expect(narrator, 0, "quarantine", "show", run_id)
    print()
    pin = control.status(run_id).manifest.inputs[0].log
    verdict = control.world.reader().verdict(run_id)
    if pin is None or verdict is None:
        raise ClaimBroken("the plan pins offsets and the run has a verdict")
    _prove_offsets(scene, pin.ranges, verdict)
    wrong = Counter(each.wrong_row for each in scene.past.of(scene.bad_day))
    narrator.prove("readers still see the day as it was", scene.topic.rows(_on(scene.bad_day)) == wrong)
    narrator.say(f"The stream committed {scene.stream.batches - before} batches meanwhile.")
    return span(pin.ranges)


def _prove_offsets(scene: Scene, ranges: Ranges, verdict: Verdict) -> None:
    """The verdict says of every pinned offset what we know of it ourselves."""
    places = (Position(each.partition, offset) for each in ranges for offset in range(each.start, each.end))
    ours = Counter(map(scene.past.fate, places))
    said = [f"{ours[fate]:,} {fate}" for fate in FATES if ours[fate]]
    check = next(each for each in verdict.checks if each.name == "offsets covered")
    scene.narrator.prove(
        f"all {span(ranges):,} offsets are accounted for: {', '.join(said)}",
        check.passed and check.detail.endswith(": " + ", ".join(said)),
        check.detail,
    )


def _publish(scene: Scene, run_id: str) -> None:
    narrator, topic, day = scene.narrator, scene.topic, scene.bad_day
    narrator.chapter("Diff, then publish: the day is right, and the stream never noticed")
    expect(narrator, 0, "diff", run_id)
    expect(narrator, 0, "publish", run_id)
    narrator.show(*topic.revenue((day - timedelta(days=1), day)))
    print()
    right = Counter(each.row for each in scene.past.of(day))
    narrator.prove(f"{day} is right, row by row: {right.total():,} orders", topic.rows(_on(day)) == right)
    others = Counter(each.row for each in scene.past.of(day - timedelta(days=1)))
    narrator.prove("the day before is as it was", topic.rows(_on(day - timedelta(days=1))) == others)


def _tally(scene: Scene, groups: Groups, offsets: int) -> TopicTally:
    narrator, topic, stream = scene.narrator, scene.topic, scene.stream
    scene.tills.stop()
    narrator.say("Now the tills close, and the stream writes what is still on its way.")
    print()
    narrator.prove("the tills never failed", scene.tills.failure is None, str(scene.tills.failure))
    stream.catch_up()
    narrator.prove("the stream never failed", not stream.failure, stream.failure)
    orders = [*scene.past.orders, *scene.tills.sent]
    expected, now = Counter(each.row for each in orders), topic.rows()
    lost, doubled = (expected - now).total(), (now - expected).total()
    narrator.prove(
        f"topic and table agree: {len(orders):,} orders, {len(scene.tills.sent)} of them live; none lost, none doubled",
        not lost and not doubled,
        f"{lost} lost, {doubled} too many",
    )
    narrator.prove(
        "nothing was written to the topic but by the tills",
        sum(topic.broker.end_offsets(TOPIC).values()) == len(orders) + 1,
    )
    after = topic.groups()
    narrator.prove(f"every consumer group stands where it stood: {', '.join(groups)}", after == groups, str(after))
    return TopicTally(len(scene.tills.sent), lost, doubled, offsets)


def _on(day: date) -> str:
    return f"day = DATE'{day}'"
