"""A run as OpenLineage events: the shape that its specification asks for, and our own facets."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from backcast.attest.openlineage import run_events
from backcast.attest.step import attest
from backcast.model.states import RunState
from backcast.store import open_store
from backcast.store.sql import SqlStore
from backcast.testing.lives import accepted_run, published_run, staged_run, undone_run
from backcast.testing.samples import sample_manifest

REQUIRED = {
    "nominalTime": {"nominalStartTime"},
    "processing_engine": {"version"},
    "errorMessage": {"message", "programmingLanguage"},
    "documentation": {"description"},
    "jobType": {"processingType", "integration"},
    "sourceCodeLocation": {"type", "url"},
    "dataSource": {"name", "uri"},
    "version": {"datasetVersion"},
    "schema": {"fields"},
}
"""What the specification requires of each facet beside `_producer` and `_schemaURL`."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/store.db", account="ana@host-1") as store:
        yield store


def told(store: SqlStore, run_id: str) -> list[dict[str, Any]]:
    events = run_events(attest(store.runs, run_id))
    for event in events:
        check(event)
    return events


def check(event: dict[str, Any]) -> None:
    """The rules of OpenLineage's RunEvent, as far as a sender can break them."""
    assert event.keys() == {"eventType", "eventTime", "producer", "schemaURL", "run", "job", "inputs", "outputs"}
    assert event["eventType"] in {"START", "RUNNING", "COMPLETE", "ABORT", "FAIL", "OTHER"}
    assert datetime.fromisoformat(event["eventTime"]).tzinfo is not None
    assert urlsplit(event["producer"]).scheme == "urn"
    assert event["schemaURL"].startswith("https://openlineage.io/spec/")
    assert str(UUID(event["run"]["runId"])) == event["run"]["runId"]
    assert event["job"]["namespace"]
    assert event["job"]["name"]
    for facets in facets_of(event):
        for name, facet in facets.items():
            assert {"_producer", "_schemaURL"} <= facet.keys(), name
            assert urlsplit(facet["_schemaURL"]).scheme in {"https", "urn"}
            assert REQUIRED.get(name, set()) <= facet.keys(), name
            assert name in REQUIRED or name in {"inputStatistics", "outputStatistics"} or name.startswith("backcast_")
    for dataset in event["inputs"] + event["outputs"]:
        assert dataset["namespace"]
        assert dataset["name"]
        assert urlsplit(dataset["facets"]["dataSource"]["uri"]).scheme


def facets_of(event: dict[str, Any]) -> list[dict[str, Any]]:
    found = [event["run"]["facets"], event["job"]["facets"]]
    for dataset in event["inputs"] + event["outputs"]:
        found += [dataset[name] for name in ("facets", "inputFacets", "outputFacets") if name in dataset]
    return found


def test_a_published_run_starts_and_completes_and_its_undo_is_told(store: SqlStore) -> None:
    run = undone_run(store)
    start, complete, undo = told(store, run.run_id)
    assert [start["eventType"], complete["eventType"], undo["eventType"]] == ["START", "COMPLETE", "OTHER"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    facets = complete["run"]["facets"]
    assert facets["nominalTime"]["nominalStartTime"] == "2025-01-01T00:00:00+00:00"
    assert facets["backcast_run"]["manifestSha256"] == run.manifest_sha256
    assert facets["backcast_publish"]["version"] == "81"
    assert "backcast_verdict" in facets
    (output,) = complete["outputs"]
    assert (output["namespace"], output["name"]) == ("iceberg://lake", "db.orders")
    assert output["facets"]["version"]["datasetVersion"] == "81"
    assert output["outputFacets"]["outputStatistics"] == {
        **output["outputFacets"]["outputStatistics"],
        "rowCount": 900,
        "fileCount": 1,
    }
    (read,) = complete["inputs"]
    assert read["facets"]["version"]["datasetVersion"] == "9007199254740993"
    assert undo["outputs"][0]["facets"]["version"]["datasetVersion"] == "819"


def test_a_run_that_failed_first_ends_once(store: SqlStore) -> None:
    run = store.runs.create(sample_manifest(reason="fails first"))
    for state in (RunState.APPROVED, RunState.RUNNING, RunState.FAILED):
        run = store.runs.transition(run, state, detail=f"now {state}")
    assert [event["eventType"] for event in told(store, run.run_id)] == ["START", "FAIL"]
    assert told(store, run.run_id)[-1]["run"]["facets"]["errorMessage"]["message"] == "now failed"
    run = store.runs.transition(run, RunState.RUNNING)
    run = store.runs.transition(store.runs.transition(run, RunState.CANCELLING), RunState.CANCELLED)
    assert [event["eventType"] for event in told(store, run.run_id)] == ["START", "OTHER", "ABORT"]


def test_a_run_under_way_has_started_and_one_that_is_planned_has_nothing_to_tell(store: SqlStore) -> None:
    assert [event["eventType"] for event in told(store, accepted_run(store).run_id)] == ["START"]
    assert told(store, store.runs.create(sample_manifest(days=1)).run_id) == []


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("/data/lake/orders", ("file", "/data/lake/orders")),
        ("s3a://bucket/lake/orders", ("s3a://bucket", "/lake/orders")),
        ("spark_catalog.shop.orders", ("iceberg://spark_catalog", "shop.orders")),
    ],
)
def test_a_table_is_named_by_where_it_lies(store: SqlStore, name: str, place: tuple[str, str]) -> None:
    manifest = sample_manifest()
    identity = manifest.target.identity.model_copy(update={"name": name})
    manifest = manifest.model_copy(update={"target": manifest.target.model_copy(update={"identity": identity})})
    (event,) = told(store, staged_run(store, manifest).run_id)
    assert (event["outputs"][0]["namespace"], event["outputs"][0]["name"]) == place


def test_the_commit_is_told_where_the_code_is_in_git(store: SqlStore) -> None:
    manifest = sample_manifest()
    code = manifest.code.model_copy(update={"git_commit": "0123abc"})
    run = published_run(store, manifest.model_copy(update={"code": code}))
    assert told(store, run.run_id)[-1]["job"]["facets"]["sourceCodeLocation"]["version"] == "0123abc"
