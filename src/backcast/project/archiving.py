"""What is left to be archived of a declared topic, and what has been."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest, Refused
from backcast.model.archiving import ToArchive
from backcast.model.proof import newest
from backcast.model.states import RunState
from backcast.model.time import parse_instant
from backcast.project.archives import archive_dataset, archive_name
from backcast.project.topics import find_source, zone_of

if TYPE_CHECKING:
    from backcast.model.coverage import Coverage
    from backcast.model.source import LogSource
    from backcast.ports import RunReader
    from backcast.project.wiring import Wiring

_ALL = 100_000
_ARCHIVED = (RunState.PUBLISHED, RunState.SUPERSEDED)


def to_archive(wiring: Wiring, name: str, offsets: str | None, until: str | None) -> ToArchive:
    """See `World.to_archive`."""
    from backcast.sources.kafka.archive_gap import make_archive, unarchived, unarchived_of
    from backcast.sources.kafka.spelling import parse_offsets

    if offsets is not None and until is not None:
        raise InvalidRequest("offsets say where to end, and --until too", hint="leave one of them out")
    source = find_source(wiring.project, name)
    dataset = archive_dataset(source)
    asked = None if offsets is None else parse_offsets(offsets, source.topic)
    moment = None if until is None else parse_instant(until, zone_of(source))
    make_archive(wiring.spark(), dataset.table, is_delta=source.archive is not None and source.archive.is_delta)
    whole = wiring.log_input(source.name, source).whole()
    if asked is not None:
        layers = unarchived_of(whole, asked)
    else:
        layers = unarchived(whole, {} if moment is None else whole.topic.ends_at(moment))
    return ToArchive(source.name, source.topic, dataset.table, dataset.name, layers)


def recorded_proofs(reader: RunReader, source: LogSource, topic_id: str) -> list[Coverage]:
    """What published runs have copied of the topic into its archive.

    Raises Refused when they read it under another isolation: nobody can tell aborted records from others there.
    """
    runs = [each for each in reader.runs(dataset=archive_name(source.name), limit=_ALL) if each.state in _ARCHIVED]
    found = []
    for run in runs:
        logs = [pin.log for pin in reader.manifest(run.run_id).inputs if pin.log and pin.log.topic_id == topic_id]
        for log in logs:
            if log.isolation is not source.isolation:
                raise Refused(
                    f"the archive of {source.topic} holds what run {run.run_id} read under {log.isolation}, and source"
                    f" {source.name} is declared as {source.isolation}",
                    hint=f"declare it as {log.isolation}, or another archive, under sources.{source.name}",
                )
        if logs:
            found += [proof.coverage for proof in newest(reader.events(run.run_id))]
    return found
