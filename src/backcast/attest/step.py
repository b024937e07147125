"""Step 5: everything -> evidence. Collects what is on record; decides nothing, changes nothing."""

from __future__ import annotations

from backcast.model.evidence import Evidence
from backcast.ports import RunReader


def attest(reader: RunReader, run_id: str) -> Evidence:
    run = reader.run(run_id)
    return Evidence(
        run=run,
        manifest=reader.manifest(run.run_id),
        chunks=tuple(reader.chunks(run.run_id)),
        stage=tuple(reader.stage_records(run.run_id)),
        verdict=reader.verdict(run.run_id),
        publications=tuple(reader.publications(run.run_id)),
        events=tuple(reader.events(run.run_id)),
    )
