"""What Kafka's client says reaches people in a sentence that helps, and never with a secret in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.errors import ConfigError
from backcast.model.source import KafkaAccess
from backcast.sources.kafka.admin import Complaints, questions
from backcast.sources.kafka.complaints import SILENCE, Complaint, failed, told
from backcast.sources.kafka.record_times import instant_of, milliseconds_of

ACCESS = KafkaAccess(
    "broker:9092",
    client={"sasl.username": "ana", "sasl.password": "geheim", "ssl.key.password": "geheim-zwei", "client.id": "shop"},
)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("_AUTHENTICATION", "refuses this user or its password"),
        ("_SSL", "refuses this user or its password"),
        ("TOPIC_AUTHORIZATION_FAILED", "does not allow this user what it needs"),
        ("_TRANSPORT", "cannot be reached"),
        ("_TIMED_OUT", "cannot be reached"),
        ("CORRUPT_MESSAGE", "failed"),
    ],
)
def test_a_failure_says_who_where_and_what_to_do(name: str, sentence: str) -> None:
    error = failed(Complaint(name, "it is so"), ACCESS, "describing topic orders")
    assert error.message == f"Kafka at broker:9092 {sentence}, while describing topic orders: it is so ({name})"
    assert error.hint


def test_values_that_may_be_secret_are_never_repeated() -> None:
    words = told("shop says geheim-zwei, then geheim,\n then http://ana:other@registry", ACCESS)
    assert words == "shop says ***, then ***, then http://***@registry"
    assert "geheim" not in repr(ACCESS)


def test_trouble_with_access_explains_more_than_a_silent_broker() -> None:
    class Said:
        def __init__(self, name: str) -> None:
            self._name = name

        def name(self) -> str:
            return self._name

        def str(self) -> str:
            return "said"

    complaints = Complaints()
    assert complaints.best() == SILENCE
    for name in ("_TRANSPORT", "_ALL_BROKERS_DOWN"):
        complaints(Said(name))
    assert complaints.best() == Complaint("_TRANSPORT", "said")
    assert complaints.access() is None
    for name in ("_AUTHENTICATION", "_TRANSPORT"):
        complaints(Said(name))
    assert complaints.best() == Complaint("_AUTHENTICATION", "said")


def test_an_option_that_the_client_does_not_know_is_a_mistake_in_the_project() -> None:
    with (
        pytest.raises(ConfigError, match="No such configuration property"),
        questions(KafkaAccess("127.0.0.1:9", client={"bogus-option": "1"}), "asking"),
    ):
        pytest.fail("the client took it")


def test_times_beyond_the_calendar_are_told_as_its_end() -> None:
    micros_written_as_millis = 1_767_225_600_000_000
    assert instant_of(micros_written_as_millis) == datetime.max.replace(tzinfo=UTC)
    assert milliseconds_of(datetime(1969, 12, 31, tzinfo=UTC)) == 0


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 1, 1)))  # noqa: DTZ001 - the zone follows
def test_a_moment_is_looked_up_by_the_first_millisecond_that_is_not_before_it(wall: datetime) -> None:
    instant = wall.replace(tzinfo=UTC)
    found = milliseconds_of(instant)
    assert instant_of(found) >= instant > instant_of(found) - timedelta(milliseconds=1)
