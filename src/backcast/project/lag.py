"""The lag of a declared stream, or of any checkpoint over a declared topic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.log import unread
from backcast.model.throttle import Behind
from backcast.project.topics import find_source
from backcast.sources.kafka.checkpoint import checkpoint_position
from backcast.sources.kafka.lag import lag_of
from backcast.sources.kafka.topic import KafkaTopic

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backcast.model.lag import StreamLag
    from backcast.model.stream import StreamSpec
    from backcast.project.config import Project


def behind(project: Project, stream: StreamSpec, read: Mapping[int, int] | None) -> Behind:
    """What lies between these offsets, or those of its checkpoint, and the end of its topic."""
    source = stream.source
    known = checkpoint_position(stream.checkpoint, source.topic) if read is None else read
    log = KafkaTopic(project.kafka_access(source.name), source.topic, source.isolation).log()
    return Behind(unread(log, known), tuple(sorted(known.items())), known_to_run=not stream.external)


def stream_lag(project: Project, name: str, topic: str | None, now: datetime) -> StreamLag:
    """`name` is a stream's, or the folder of a checkpoint when the topic is given too. Raises UnknownName."""
    if topic is not None:
        if name in project.config.streams:
            hint = f"leave --topic out, or write ./{name} for a folder"
            raise InvalidRequest(f"stream {name!r} has a topic of its own", hint=hint)
        source = find_source(project, topic)
        return lag_of(project.kafka_access(source.name), source, name, now)
    if name not in project.config.streams and ("/" in name or not project.config.streams):
        hint = f"backcast stream lag {name} --topic SOURCE"
        raise InvalidRequest(f"which topic does the checkpoint {name} read?", hint=hint)
    stream = project.stream(name)
    return lag_of(project.kafka_access(stream.source.name), stream.source, stream.checkpoint, now, stream)
