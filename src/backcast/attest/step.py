"""Step 5: everything -> evidence. Collects what is on record; decides nothing, changes nothing."""

from __future__ import annotations

from backcast.model.evidence import Evidence
from backcast.ports import RunReader


def attest(reader: RunReader, run_id: str) -> Evidence:
    run = reader.run(run_id)
    verdicts = tuple(reader.verdicts(run.run_id))
    manifest, recorded = reader.manifest(run.run_id), reader.manifest_text(run.run_id)
    return Evidence(
        run=run,
        manifest=manifest,
        chunks=tuple(reader.chunks(run.run_id)),
        stage=tuple(reader.stage_records(run.run_id)),
        verdict=verdicts[-1] if verdicts else None,
        publications=tuple(reader.publications(run.run_id)),
        events=tuple(reader.events(run.run_id)),
        verdicts=verdicts,
        manifest_text="" if recorded.encode() == manifest.canonical() else recorded,
    )
