"""Kafka's client is an extra: who lacks it is told how to get it."""

from __future__ import annotations

import sys

import pytest

from backcast.errors import ConfigError
from backcast.model.source import KafkaAccess
from backcast.sources.kafka.topic import KafkaTopic


def test_without_the_client_the_way_to_install_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(ConfigError, match="needs the client confluent-kafka") as caught:
        KafkaTopic(KafkaAccess("127.0.0.1:1"), "orders").facts()
    assert "backcast[kafka]" in caught.value.hint
