"""What is signed: an in-toto statement that names every file of a bundle, and what the run did to which table.

It follows from the files alone, so that it can be made again from them and compared.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from backcast.model.document import canonical, sha256

STATEMENT, ENVELOPE = "statement.json", "statement.dsse.json"
TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:backcast:evidence:v1"
FORMAT = 1


def statement(files: Mapping[str, bytes]) -> bytes:
    """Canonical JSON. The files must be there and be JSON; whether they fit each other is not asked here."""
    run, manifest = json.loads(files["run.json"]), json.loads(files["manifest.json"])
    publications = json.loads(files["publications.json"])
    verdicts = {each["staged"]: each["net_change"] for each in json.loads(files["verdicts.json"])}
    lines = files["events.jsonl"].splitlines()
    head = json.loads(lines[-1]) if lines else {"number": 0, "sha256": ""}
    table = manifest["target"]["identity"]
    subjects = [{"name": name, "digest": {"sha256": sha256(files[name])}} for name in sorted(files)]
    subjects += [_published(table, each, verdicts.get(each["staged"])) for each in publications]
    return canonical(
        {
            "_type": TYPE,
            "subject": subjects,
            "predicateType": PREDICATE_TYPE,
            "predicate": {
                "format": FORMAT,
                "run": run["run_id"],
                "state": run["state"],
                "pipeline": run["pipeline"],
                "dataset": run["dataset"],
                "table": {"name": table["name"], "format": table["format"], "uuid": table["uuid"]},
                "manifest": run["manifest_sha256"],
                "events": {"number": head["number"], "head": head["sha256"]},
                "published": [{key: each.get(key) for key in _PUBLISHED} for each in publications],
            },
        }
    )


_PUBLISHED = ("generation", "base", "staged", "version", "published_at", "undo_version", "undone_at")


def _published(table: Mapping[str, Any], publication: Mapping[str, Any], net_change: str | None) -> dict[str, Any]:
    """The version of the table that a publish made, known by the digest of the files that went in and out."""
    return {
        "name": table["name"],
        "digest": {"sha256": net_change or sha256(canonical(publication))},
        "annotations": {"version": publication["version"], "undoVersion": publication.get("undo_version")},
    }
