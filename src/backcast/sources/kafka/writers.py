"""Avro schemas of a topic: what records are read as, and what they may have been written with. Asked on the driver."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backcast.errors import Drifted, InvalidRequest, Refused, Unavailable, UnknownName
from backcast.model.log import SchemaPin
from backcast.model.source import Encoding, KafkaAccess, Layout, LogSource

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import RegisteredSchema

_NOT_FOUND = 404
_NUMBERS = frozenset({"timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms"})


@dataclass(frozen=True, slots=True)
class Writers:
    """The reader schema, and writer schemas by the ids that records carry; without any the records carry none."""

    reader: str
    """JSON text."""
    by_id: Mapping[int, str] = field(default_factory=dict)
    versions: Mapping[int, int] = field(default_factory=dict)
    """The version of the subject that each id is."""
    subject: str | None = None
    reader_id: int | None = None
    """None: the reader schema comes from a file."""


@dataclass(frozen=True, slots=True)
class Schemas:
    """What both sides of a topic's records are read as; None where a side is not Avro."""

    value: Writers | None
    key: Writers | None

    def pins(self) -> tuple[SchemaPin, ...]:
        """What a plan remembers of them: a version that is registered later must not change what a run reads."""
        sides = ((name, found) for name, found in (("value", self.value), ("key", self.key)) if found is not None)
        return tuple(
            SchemaPin(side=name, subject=found.subject, reader=found.reader_id, versions=dict(found.versions))
            for name, found in sides
            if found.subject is not None
        )


def find_schemas(source: LogSource, access: KafkaAccess, pinned: Iterable[SchemaPin] = ()) -> Schemas:
    """The schemas of a topic as they are now, read as a plan has pinned it where there is one."""
    pins = {each.side: each for each in pinned}
    sides = (("value", source.value), ("key", source.key))
    value, key = (find_writers(layout, source.topic, name, access, pins.get(name)) for name, layout in sides)
    return Schemas(value, key)


def find_writers(
    layout: Layout, topic: str, side: str, access: KafkaAccess, pinned: SchemaPin | None = None
) -> Writers | None:
    """The schemas of one side of a topic's records; None where it is not Avro. `side` is `value` or `key`."""
    if layout.encoding is not Encoding.AVRO:
        return None
    if layout.registry is None:
        if not layout.schema:
            raise InvalidRequest(f"the {side} of topic {topic} is Avro, with neither a registry nor a schema file")
        return Writers(_record(layout.schema, f"the schema file of topic {topic}"))
    subject = layout.subject or f"{topic}-{side}"
    registered = _registered(layout.registry, subject, access)
    chosen = None if layout.schema else _reader(registered, subject, pinned)
    reader = layout.schema if chosen is None else _text(chosen, subject)
    return Writers(
        _record(reader, f"subject {subject}"),
        {each.schema_id: _text(each, subject) for each in registered if each.schema_id is not None},
        {each.schema_id: each.version for each in registered if each.schema_id is not None and each.version},
        subject,
        None if chosen is None else chosen.schema_id,
    )


def _reader(registered: list[RegisteredSchema], subject: str, pinned: SchemaPin | None) -> RegisteredSchema:
    """The newest, or the one that was when the run was planned."""
    if pinned is None or pinned.reader is None:
        return max(registered, key=lambda each: each.version or 0)
    found = next((each for each in registered if each.schema_id == pinned.reader), None)
    if found is None:
        version = pinned.versions.get(pinned.reader)
        raise Drifted(
            f"version {version} of subject {subject}, which records are read as, is gone from the registry",
            hint="register it again, or plan again",
        )
    return found


def _registered(address: str, subject: str, access: KafkaAccess) -> list[RegisteredSchema]:
    """All versions of the subject."""
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

    try:
        client = SchemaRegistryClient({"url": address, **_options(access.registry)})
        return [client.get_version(subject, number) for number in client.get_versions(subject)]
    except SchemaRegistryError as error:
        if error.http_status_code == _NOT_FOUND:
            raise UnknownName(
                f"the schema registry knows no subject {subject}", hint="name the topic's subject in backcast.yaml"
            ) from error
        raise Unavailable(f"the schema registry refused: {error.error_message}", subject=subject) from error
    except OSError as error:
        raise _silent(error) from error
    except Exception as error:
        # Its HTTP library is no dependency of ours, and neither are the names of its errors.
        if not type(error).__module__.startswith(("httpx", "httpcore")):
            raise
        raise _silent(error) from error


def _silent(error: Exception) -> Unavailable:
    return Unavailable(f"the schema registry does not answer: {type(error).__name__}", hint="check its address")


def _options(options: Mapping[str, str]) -> dict[str, Any]:
    """As the client wants them: what it counts or waits for as numbers."""
    return {name: float(value) if name in _NUMBERS else value for name, value in options.items()}


def _text(registered: RegisteredSchema, subject: str) -> str:
    schema = registered.schema
    if schema.references:
        raise Refused(
            f"version {registered.version} of subject {subject} refers to other subjects, which is not supported",
            hint="declare a schema file that holds everything",
        )
    return schema.schema_str or ""


def _record(text: str, what: str) -> str:
    """The schema, once it is clear that it has fields that can become columns."""
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise InvalidRequest(f"{what} is not JSON: {error}") from error
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise InvalidRequest(f"{what} is not an Avro record", hint="values need named fields to become columns")
    return text
