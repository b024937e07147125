"""A broker that asks who is there: what is refused is told as such, at once, and no secret with it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from backcast.errors import Unavailable
from backcast.model.log import OffsetRange, PartitionState
from backcast.model.manifest import Survival
from backcast.model.source import KafkaAccess
from backcast.sources.kafka.retention import partition_survival
from backcast.sources.kafka.topic import KafkaTopic
from backcast.testing import kafka
from backcast.testing.kafka_records import Record
from backcast.testing.servers import free_port

PASSWORD = "geheim-und-lang"  # noqa: S105 - of a broker that lives for a second
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where a broker asks for a password. ana may read and describe the topic, and nothing else; bob may do nothing."""
    secure, plain = f"127.0.0.1:{free_port()}", kafka._configure
    settings = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": f'{LOGIN} user_ana="{PASSWORD}" user_bob="{PASSWORD}";',
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }

    def configured(properties: Path, data: Path) -> str:
        servers = plain(properties, data)
        lines = [line.replace(f"PLAINTEXT://{servers}", f"PLAINTEXT://{servers},SECURE://{secure}")
                 for line in properties.read_text().splitlines()
                 if line.partition("=")[0] not in settings]  # fmt: skip
        properties.write_text("\n".join([*lines, *(f"{name}={value}" for name, value in settings.items())]))
        return servers

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka, "_configure", configured)
        with kafka.kafka_broker() as broker:
            broker.create_topic("orders")
            broker.produce("orders", [Record("{}", timestamp=1_767_225_600_000)])
            allow(broker, "ana", "DESCRIBE", "READ")
            yield secure


def allow(broker: kafka.KafkaBroker, user: str, *operations: str) -> None:
    from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

    pattern = (ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, f"User:{user}", "*")
    rights = [AclBinding(*pattern, AclOperation[each], AclPermissionType.ALLOW) for each in operations]
    for future in broker.admin().create_acls(rights).values():
        future.result(20)


def topic(address: str, user: str = "ana", password: str = PASSWORD, **more: Any) -> KafkaTopic:
    client = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return KafkaTopic(KafkaAccess(address, client=client), "orders")


def test_to_read_and_describe_the_topic_is_all_that_is_needed(address: str) -> None:
    """No right to any group; without the topic's settings nobody can say how long it keeps records."""
    orders = topic(address)
    facts = orders.facts()
    assert facts.partitions == (PartitionState(0, 0, 1),)
    assert facts.cleanup == frozenset()
    first = orders.record_time(0, 0)
    assert first is not None
    wanted = OffsetRange(partition=0, start=0, end=1)
    assert partition_survival(facts, wanted, first, first, first - first).survival is Survival.UNKNOWN


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"password": "falsch-und-lang"}, "refuses this user or its password"),
        ({"sasl_mechanism": "SCRAM-SHA-256"}, "refuses this user or its password"),
        ({"user": "bob"}, "does not allow this user what it needs"),
    ],
)
def test_a_refusal_is_told_at_once_and_without_the_password(address: str, asked: dict[str, str], message: str) -> None:
    started = time.monotonic()
    for ask in (lambda each: each.facts(), lambda each: each.record_time(0, 0)):
        with pytest.raises(Unavailable, match=f"Kafka at {address} {message}") as caught:
            ask(topic(address, **asked))
        told = str(caught.value.as_dict())
        assert PASSWORD not in told
        assert "falsch-und-lang" not in told
    assert time.monotonic() - started < 5
