"""A run as OpenLineage tells runs: one event for its start and one for each end it came to. Pure; sends nothing."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import NAMESPACE_URL, uuid5

from backcast import __version__
from backcast.model.evidence import APPROVALS, Evidence
from backcast.model.manifest import InputPin
from backcast.model.run import Event, Publication
from backcast.model.table import TableIdentity

PRODUCER = f"urn:backcast:{__version__}"
_SPEC = "https://openlineage.io/spec"
SCHEMA = f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent"
_TYPES = {
    "state.running": "START",
    "state.failed": "FAIL",
    "state.rejected": "FAIL",
    "state.cancelled": "ABORT",
    "state.published": "COMPLETE",
    "state.undone": "OTHER",
}
"""What each change of state is called there; the others are our own affair."""
_Facets = dict[str, dict[str, Any]]


def run_events(evidence: Evidence, namespace: str = "backcast") -> list[dict[str, Any]]:
    """RunEvents in the order in which they happened: one start, one end, and what else happened as `OTHER`."""
    told = [event for event in evidence.events if event.name in _TYPES]
    started = next((event for event in told if _TYPES[event.name] == "START"), None)
    ended = _end(told)
    found: list[dict[str, Any]] = []
    for event in told:
        kind = _TYPES[event.name]
        if kind == "START" and event is not started:
            continue
        if kind != "START" and event is not ended:
            kind = "OTHER"
        found.append(_run_event(evidence, event, kind, namespace))
    return found


def _end(told: list[Event]) -> Event | None:
    """The first publish; of a run that has none, the last time that it failed or was given up."""
    complete = next((event for event in told if _TYPES[event.name] == "COMPLETE"), None)
    return complete or next((event for event in reversed(told) if _TYPES[event.name] in ("FAIL", "ABORT")), None)


def _run_event(evidence: Evidence, event: Event, kind: str, namespace: str) -> dict[str, Any]:
    run, manifest = evidence.run, evidence.manifest
    return {
        "eventType": kind,
        "eventTime": _time(event.at),
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
        "run": {
            "runId": str(uuid5(NAMESPACE_URL, f"urn:backcast:run:{run.run_id}")),
            "facets": _run_facets(evidence, event, kind),
        },
        "job": {"namespace": namespace, "name": run.pipeline, "facets": _job_facets(evidence)},
        "inputs": [_input(pin) for pin in manifest.inputs],
        "outputs": [_output(evidence, event)],
    }


def _run_facets(evidence: Evidence, event: Event, kind: str) -> _Facets:
    manifest, run = evidence.manifest, evidence.run
    facets: _Facets = {
        "processing_engine": _facet(
            "1-1-1", "ProcessingEngineRunFacet", version=manifest.code.packages.get("pyspark", "unknown"), name="spark"
        ),
        "backcast_run": _own(
            "run",
            runId=run.run_id,
            kind=run.kind,
            reason=run.reason,
            ticket=run.ticket,
            requestedBy=run.requested_by,
            manifestSha256=run.manifest_sha256,
            events={"number": event.number, "sha256": event.sha256},
            account=event.account,
        ),
        "backcast_scope": _own(
            "scope",
            windows=[{"start": _time(each.start), "end": _time(each.end)} for each in manifest.scope.windows],
            predicate=manifest.scope.predicate.as_json(),
            rowExact=manifest.scope.exact,
            publishMode=manifest.settings.publish_mode.value,
        ),
        "backcast_approvals": _own("approvals", approvals=_approvals(evidence, event)),
    }
    if manifest.scope.windows:
        first, last = manifest.scope.windows[0], manifest.scope.windows[-1]
        facets["nominalTime"] = _facet(
            "1-0-1", "NominalTimeRunFacet", nominalStartTime=_time(first.start), nominalEndTime=_time(last.end)
        )
    if kind == "FAIL":
        facets["errorMessage"] = _facet(
            "1-0-1", "ErrorMessageRunFacet", message=str(event.data.get("detail", "")), programmingLanguage="PYTHON"
        )
    verdict = next((each for each in reversed(evidence.verdicts) if each.at <= event.at), None)
    if verdict is not None:
        checks = [{"name": each.name, "success": each.passed, "detail": each.detail} for each in verdict.checks]
        facets["backcast_verdict"] = _own(
            "verdict",
            outcome=verdict.outcome.value,
            staged=verdict.staged,
            netChange=verdict.net_change,
            rows=verdict.rows,
            checks=checks,
        )
    publication = _publication(evidence, event)
    if publication is not None:
        facets["backcast_publish"] = _own(
            "publish",
            generation=publication.generation,
            base=publication.base,
            version=publication.version,
            undoVersion=publication.undo_version,
            filesAdded=len(publication.added),
            filesRemoved=len(publication.removed),
        )
    return facets


def _approvals(evidence: Evidence, event: Event) -> list[dict[str, Any]]:
    return [
        {"event": each.name, "at": _time(each.at), **{key: each.data.get(key) for key in ("role", "by", "how")}}
        for each in evidence.events
        if each.name.startswith(APPROVALS) and each.number < event.number
    ]


def _job_facets(evidence: Evidence) -> _Facets:
    code = evidence.manifest.code
    told = f"{evidence.run.kind} of {evidence.run.dataset} by {code.transform} {code.version}"
    facets = {
        "documentation": _facet("1-0-1", "DocumentationJobFacet", description=told),
        "jobType": _facet(
            "2-0-3",
            "JobTypeJobFacet",
            processingType="BATCH",
            integration="BACKCAST",
            jobType=evidence.run.kind.upper(),
        ),
    }
    if code.git_commit is not None:
        # The manifest knows the commit, not where the repository is kept.
        facets["sourceCodeLocation"] = _facet(
            "1-0-1",
            "SourceCodeLocationJobFacet",
            type="git",
            url=f"urn:git:commit:{code.git_commit}",
            path=code.transform,
            version=code.git_commit,
        )
    return facets


def _input(pin: InputPin) -> dict[str, Any]:
    facets = _dataset_facets(pin.identity, pin.version)
    counts = _facet("1-0-0", "InputStatisticsInputDatasetFacet", rowCount=pin.rows, size=pin.bytes, fileCount=pin.files)
    return {**_name(pin.identity), "facets": facets, "inputFacets": {"inputStatistics": counts}}


def _output(evidence: Evidence, event: Event) -> dict[str, Any]:
    publication = _publication(evidence, event)
    version = None
    if publication is not None:
        version = publication.undo_version if event.name == "state.undone" else publication.version
    output: dict[str, Any] = {
        **_name(evidence.manifest.target.identity),
        "facets": _dataset_facets(evidence.manifest.target.identity, version),
    }
    if publication is not None and evidence.verdict is not None and event.name == "state.published":
        output["outputFacets"] = {
            "outputStatistics": _facet(
                "1-0-2",
                "OutputStatisticsOutputDatasetFacet",
                rowCount=evidence.verdict.rows,
                fileCount=len(publication.added),
            )
        }
    return output


def _publication(evidence: Evidence, event: Event) -> Publication | None:
    version = event.data.get("version")
    return next((each for each in evidence.publications if version in (each.version, each.undo_version)), None)


def _dataset_facets(identity: TableIdentity, version: str | None) -> _Facets:
    place = _name(identity)
    fields = [{"name": column.name, "type": column.type} for column in identity.columns]
    facets = {
        "schema": _facet("1-1-1", "SchemaDatasetFacet", fields=fields),
        "dataSource": _facet("1-0-1", "DatasourceDatasetFacet", name=place["namespace"], uri=_uri(place["namespace"])),
        "backcast_table": _own("table", format=identity.format, uuid=identity.uuid),
    }
    if version is not None:
        facets["version"] = _facet("1-0-1", "DatasetVersionDatasetFacet", datasetVersion=version)
    return facets


def _name(identity: TableIdentity) -> dict[str, str]:
    """A path is known by where it lies, a table by its catalog, a topic by its name."""
    if identity.name.startswith(f"{identity.format}:"):
        return {"namespace": identity.format, "name": identity.name.removeprefix(f"{identity.format}:")}
    parts = urlsplit(identity.name)
    if parts.scheme and parts.path.startswith("/"):
        return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": parts.path}
    if identity.name.startswith("/"):
        return {"namespace": "file", "name": identity.name}
    catalog, dot, name = identity.name.partition(".")
    return {"namespace": f"{identity.format}://{catalog}" if dot else identity.format, "name": name or catalog}


def _uri(namespace: str) -> str:
    return namespace if "://" in namespace else f"{namespace}:///"


def _facet(version: str, name: str, /, **values: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}", **values}


def _own(name: str, /, **values: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": f"urn:backcast:facet:{name}:1", **values}


def _time(moment: datetime) -> str:
    return moment.isoformat()
