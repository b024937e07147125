"""What a replay leaves alone: the groups of live consumers, their positions, and the topic itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from backcast.model.states import RunState
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import Orders, rows_of, spread

if TYPE_CHECKING:
    from backcast.testing.kafka import KafkaBroker

_SECONDS = 30


def seen(broker: KafkaBroker, group: str) -> tuple[Any, ...]:
    """The group's state, its members, and how far it says that it has read."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    told = broker.admin().describe_consumer_groups([group], request_timeout=_SECONDS)[group].result(_SECONDS)
    asked = broker.admin().list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
    offsets = asked[group].result(_SECONDS).topic_partitions
    members = sorted(each.member_id for each in told.members)
    return told.state, members, sorted((each.topic, each.partition, each.offset) for each in offsets)


def test_the_group_of_the_live_pipeline_is_as_it_was_and_no_other_stays(new_orders: Callable[..., Orders]) -> None:
    """A member of it is at work all the while; from the first look at the topic to the undo."""
    from confluent_kafka import Consumer, TopicPartition

    orders, group = new_orders(partitions=2), "live-orders"
    sent = list(spread(4, 10))
    orders.send(sent)
    settings = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest", "log_level": 0}
    live = Consumer({"bootstrap.servers": orders.broker.servers, **settings})
    try:
        live.subscribe([orders.topic])
        wait_until(lambda: live.poll(0.1) is not None, "the live consumer reads")
        live.commit(offsets=[TopicPartition(orders.topic, each, 3 + each) for each in (0, 1)], asynchronous=False)
        before, known = seen(orders.broker, group), orders.broker.groups()
        ends = orders.broker.end_offsets(orders.topic)
        assert before[2] == [(orders.topic, 0, 3), (orders.topic, 1, 4)]
        control = orders.open()
        assert control.kafka_offsets("orders", "2026-01-02").span
        assert control.kafka_window("orders", "2026-01-02..2026-01-04").partitions
        plan = control.plan(orders.request())
        assert control.run(plan.run_id).state is RunState.ACCEPTED
        control.publish(plan.run_id)
        assert orders.rows() == rows_of(sent, "2026-01-02", "2026-01-04")
        control.undo(plan.run_id)
        assert seen(orders.broker, group) == before
        assert orders.broker.groups() == known
        assert orders.broker.end_offsets(orders.topic) == ends, "nothing is written to the topic"
    finally:
        live.close()
