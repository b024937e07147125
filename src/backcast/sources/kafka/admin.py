"""A connection to the brokers for questions: every wait is bounded, and leaving closes it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from backcast.errors import ConfigError, Unavailable
from backcast.sources.kafka.complaints import SILENCE, Complaint, failed, told

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka.admin import AdminClient

    from backcast.model.source import KafkaAccess

REACH_SECONDS = 5.0
"""How long brokers may take to answer at all."""
ANSWER_SECONDS = 20.0
"""How long a broker that is there may take over one question."""
_SLICE = 0.05
_T = TypeVar("_T")

# The control plane asks a few short questions; what the client logs on its own would end up between answers.
_QUIET = {"log_level": 0, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500}


class Complaints:
    """What the client reported beside its answers: why nobody answers is said only here."""

    def __init__(self) -> None:
        self._all: list[Complaint] = []

    def __call__(self, error: Any) -> None:
        self._all.append(Complaint.of(error))

    def access(self) -> Complaint | None:
        return next((each for each in self._all if each.about_access), None)

    def best(self, otherwise: Complaint = SILENCE) -> Complaint:
        """The one that explains most: trouble with access, else the last about a single broker."""
        telling = [each for each in self._all if each.name != "_ALL_BROKERS_DOWN"]
        return self.access() or (telling or [otherwise])[-1]


def settings(access: KafkaAccess, complaints: Complaints, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The client's options; those that keep it harmless win over what is declared."""
    chosen = {**access.client, "bootstrap.servers": access.servers, **_QUIET, **(more or {})}
    return {**chosen, "error_cb": complaints}


def rejected(error: Exception, access: KafkaAccess) -> ConfigError:
    """For options that the client does not take. Its sentences quote values."""
    said = told(Complaint.of(error).sentence, access)
    hint = "correct the options of the source in backcast.yaml"
    return ConfigError(f"Kafka's client does not take the options of this source: {said}", hint=hint)


class Questions:
    """Asks one cluster. Not for use after its block."""

    def __init__(self, client: AdminClient, access: KafkaAccess, complaints: Complaints) -> None:
        self.client = client
        self._access = access
        self._complaints = complaints

    def answer(self, future: Future[_T], doing: str, seconds: float = ANSWER_SECONDS) -> _T:
        """The answer. Raises KafkaException for what a broker says, Unavailable when none says anything."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + seconds
        while True:
            try:
                return future.result(_SLICE)
            except TimeoutError:
                self.client.poll(0)
                refused = self._complaints.access()
                if refused is not None:
                    raise failed(refused, self._access, doing) from None
                if time.monotonic() >= deadline:
                    raise self._lost(SILENCE, doing) from None
            except KafkaException as error:
                said = Complaint.of(error)
                if said.about_reaching:
                    raise self._lost(said, doing) from None
                raise

    def _lost(self, said: Complaint, doing: str) -> Unavailable:
        self.client.poll(0)
        return failed(self._complaints.best(said), self._access, doing)


@contextmanager
def questions(access: KafkaAccess, doing: str) -> Iterator[Questions]:
    """Raises Unavailable within seconds where nobody answers, and for whatever a broker objects to in the block."""
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ModuleNotFoundError as error:
        hint = "install it with `pip install 'backcast[kafka]'`"
        raise ConfigError("a Kafka source needs the client confluent-kafka", hint=hint) from error

    complaints = Complaints()
    try:
        client = AdminClient(settings(access, complaints))
    except (KafkaException, TypeError, ValueError) as error:
        raise rejected(error, access) from None
    try:
        with client:
            yield Questions(client, access, complaints)
    except KafkaException as error:
        raise failed(Complaint.of(error), access, doing) from None
