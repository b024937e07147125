"""A declared topic by either of its names, and the moments that people write about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import UnknownName

if TYPE_CHECKING:
    from backcast.model.source import LogSource
    from backcast.project.config import Project


def find_source(project: Project, name: str) -> LogSource:
    """The source of that name, or the only one that reads a topic of that name. Raises UnknownName."""
    if name in project.config.sources:
        return project.log_source(name)
    reading = [each for each, config in project.config.sources.items() if config.topic == name]
    if len(reading) > 1:
        hint = f"name one of them: {', '.join(reading)}"
        raise UnknownName(f"{len(reading)} sources read topic {name!r}", hint=hint, kind="source", name=name)
    return project.log_source(reading[0] if reading else name)


def zone_of(source: LogSource) -> str:
    """Where dates that people write about the source begin."""
    return source.time.zone if source.time else "UTC"
