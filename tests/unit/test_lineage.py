"""What rows and commits say about where they come from."""

from __future__ import annotations

from datetime import UTC, datetime

from backcast.model.lineage import LINEAGE_COLUMNS, commit_properties, lineage_values, pinned
from backcast.model.manifest import Manifest
from backcast.model.replay import ReplayPin
from backcast.model.table import Column
from backcast.model.watermark import WatermarkStrategy
from backcast.testing.samples import sample_manifest

START = datetime(2025, 1, 1, tzinfo=UTC)


def stamping(manifest: Manifest, **columns: str) -> dict[str, object]:
    settings = manifest.settings.model_copy(update={"lineage_columns": True})
    manifest = manifest.model_copy(update={"settings": settings})
    described = tuple(Column(name=name, type=kind, nullable=True) for name, kind in columns.items())
    return dict(lineage_values(manifest, "run-1", described, manifest.inputs))


def test_only_columns_that_the_table_has_are_filled_and_only_when_asked_for() -> None:
    manifest = sample_manifest()
    assert stamping(manifest, id="bigint", produced_by_run_id="string") == {"produced_by_run_id": "run-1"}
    every = tuple(Column(name=name, type="string", nullable=True) for name in LINEAGE_COLUMNS)
    assert lineage_values(manifest, "run-1", every, manifest.inputs) == {}
    assert stamping(manifest, **dict.fromkeys(LINEAGE_COLUMNS, "string")).keys() == set(LINEAGE_COLUMNS)


def test_the_range_that_was_read_fits_the_type_of_its_column() -> None:
    manifest = sample_manifest()
    assert stamping(manifest, input_range_start="timestamp") == {"input_range_start": START}
    assert stamping(manifest, input_range_start="timestamp_ntz") == {"input_range_start": START.replace(tzinfo=None)}
    assert stamping(manifest, input_range_end="string") == {"input_range_end": "2025-01-04T00:00:00+00:00"}
    nothing = manifest.model_copy(update={"input_windows": ()})
    assert stamping(nothing, input_range_end="timestamp") == {"input_range_end": None}


def test_reference_data_is_told_apart_from_what_follows_the_window() -> None:
    manifest = sample_manifest()
    (events,) = manifest.inputs
    calendar = events.model_copy(update={"name": "calendar", "windowed": False, "version": "7"})
    told = stamping(
        manifest.model_copy(update={"inputs": (events, calendar)}),
        input_snapshot_id="string",
        reference_data_version="string",
        restatement_reason="string",
    )
    assert told == {
        "input_snapshot_id": "lake.db.events@9007199254740993",
        "reference_data_version": "lake.db.events@7",
        "restatement_reason": "time zone bug",
    }
    assert stamping(manifest, reference_data_version="string") == {"reference_data_version": None}


def test_a_commit_names_its_inputs_a_topic_by_its_offsets() -> None:
    manifest = sample_manifest()
    topic = manifest.inputs[0].model_copy(update={"version": "0=0..4,1=0..6"})
    properties = commit_properties(manifest.model_copy(update={"inputs": (topic,)}), "run-1", "publish")
    assert properties["backcast.inputs"] == pinned(topic) == "lake.db.events@0=0..4,1=0..6"


def test_rows_that_a_query_of_its_own_computed_are_told_apart_from_those_of_a_batch() -> None:
    manifest = sample_manifest()
    assert stamping(manifest, processing_mode="string") == {"processing_mode": "BACKFILL"}
    streamed = ReplayPin(stream="live", strategy=WatermarkStrategy.SORTED, because="a test")
    told = {
        strategy: stamping(
            manifest.model_copy(update={"replay": streamed.model_copy(update={"strategy": strategy})}),
            processing_mode="string",
        )["processing_mode"]
        for strategy in (WatermarkStrategy.SORTED, WatermarkStrategy.BATCH)
    }
    assert told == {WatermarkStrategy.SORTED: "REPLAY", WatermarkStrategy.BATCH: "BACKFILL"}
