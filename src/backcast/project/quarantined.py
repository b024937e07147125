"""What runs set aside of declared topics, in the quarantine of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.sources.kafka.quarantine import kept_offsets, shown_records

if TYPE_CHECKING:
    from backcast.model.log import Ranges
    from backcast.model.quarantine import QuarantinedRecord
    from backcast.project.wiring import Wiring


def quarantined_records(wiring: Wiring, run_id: str, sources: list[str], limit: int) -> list[QuarantinedRecord]:
    """The first of these sources."""
    places = [wiring.project.log_source(name).quarantine for name in sources]
    found = [
        record
        for table in sorted({each.table for each in places if each is not None})
        for record in shown_records(wiring.spark(), table, run_id, limit)
    ]
    return found[:limit]


def quarantined_offsets(wiring: Wiring, run_id: str, sources: list[str]) -> dict[str, Ranges]:
    """Where they lie in the topic of each source."""
    found = {}
    for source in map(wiring.project.log_source, sources):
        place = source.quarantine
        found[source.name] = () if place is None else kept_offsets(wiring.spark(), place.table, run_id, source.topic)
    return found
