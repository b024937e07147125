"""A run's evidence as files: what is on record, what follows from it, and a statement that names every one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from backcast.attest.archive import packed
from backcast.attest.changes import changes
from backcast.attest.envelope import sealed
from backcast.attest.instructions import INSTRUCTIONS
from backcast.attest.keys import SigningKey
from backcast.attest.openlineage import run_events
from backcast.attest.statement import ENVELOPE, STATEMENT, statement
from backcast.attest.verify import check_files
from backcast.model.document import canonical, sha256
from backcast.model.evidence import APPROVALS, DIFFED, NOTE, Evidence
from backcast.model.proof import COVERED
from backcast.model.run import Event

EXTRACTS: dict[str, Callable[[str], bool]] = {
    "approvals.json": lambda name: name.startswith(APPROVALS),
    "coverage.json": lambda name: name == COVERED,
    "diff.json": lambda name: name == DIFFED,
    "notes.json": lambda name: name == NOTE,
}
"""Files with the events of one kind, as the history has them; left out when there is none, but for approvals."""


def bundle(evidence: Evidence, key: SigningKey | None = None) -> bytes:
    """The archive. The same evidence and key give the same bytes.

    Raises NotVerified when the evidence contradicts itself: then the store was changed by another hand.
    """
    files = contents(evidence)
    check_files(files)
    payload = statement(files)
    return packed({**files, STATEMENT: payload, ENVELOPE: sealed(payload, key)})


def contents(evidence: Evidence) -> dict[str, bytes]:
    """Every file but the statement and its envelope."""
    events = evidence.events
    files = {
        "README.txt": INSTRUCTIONS.encode(),
        "run.json": evidence.run.canonical(),
        "manifest.json": evidence.manifest_text.encode() or evidence.manifest.canonical(),
        "chunks.json": _list(evidence.chunks),
        "stage.json": _list(evidence.stage),
        "verdicts.json": _list(evidence.verdicts),
        "publications.json": _list(evidence.publications),
        "events.jsonl": b"".join(event.canonical() + b"\n" for event in events),
        "code.json": canonical(_code(evidence)),
        "timings.json": canonical(_timings(evidence)),
        "openlineage.json": canonical(run_events(evidence)),
    }
    if (told := changes(evidence)) is not None:
        files["change.json"] = canonical(told)
    for name, belongs in EXTRACTS.items():
        found = [event for event in events if belongs(event.name)]
        if found or name == "approvals.json":
            files[name] = _list(found)
    return files


def _list(documents: Sequence[Any]) -> bytes:
    return canonical([each.as_json() for each in documents])


def _code(evidence: Evidence) -> dict[str, Any]:
    """What computed the result, with one digest for the code and one for what it depends on."""
    code = evidence.manifest.code
    return {
        "transform": code.transform,
        "version": code.version,
        "git_commit": code.git_commit,
        "git_dirty": list(code.git_dirty),
        "files": code.files,
        "files_sha256": sha256(canonical(code.files)),
        "packages": code.packages,
        "packages_sha256": sha256(canonical(code.packages)),
        "config_sha256": code.config,
        "spark": evidence.manifest.settings.spark,
    }


def _timings(evidence: Evidence) -> dict[str, Any]:
    """How long the run was in each state, and what each chunk and each job took, in seconds."""
    states = [event for event in evidence.events if event.name.startswith("state.")]
    chunks = [each for each in evidence.chunks if each.started_at is not None]
    return {
        "states": [_stay(here, following) for here, following in pairwise([*states, None]) if here is not None],
        "chunks": [
            {
                "chunk": each.chunk_id,
                "started_at": _time(each.started_at),
                "finished_at": _time(each.finished_at),
                "seconds": None
                if each.started_at is None or each.finished_at is None
                else (each.finished_at - each.started_at).total_seconds(),
                "rows": each.output_rows,
                "attempts": each.attempts,
            }
            for each in chunks
        ],
        "jobs": [
            {"version": each.version, "chunks": len(each.chunk_ids), "rows": each.digest.rows, "seconds": each.seconds}
            for each in evidence.stage
        ],
    }


def _stay(here: Event, following: Event | None) -> dict[str, Any]:
    seconds = None if following is None else (following.at - here.at).total_seconds()
    return {"state": here.data["to"], "at": here.at.isoformat(), "by": here.account, "seconds": seconds}


def _time(moment: Any) -> str | None:
    return None if moment is None else str(moment.isoformat())
