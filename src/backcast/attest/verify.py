"""Is this bundle what it was when it was made, and does all of it fit together? Needs nothing but the file.

Documents are read as plain JSON, not as the nouns of this release: bundles outlive releases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from backcast.attest import consistency
from backcast.attest.archive import unpacked
from backcast.attest.envelope import opened
from backcast.attest.keys import PublicKey
from backcast.attest.statement import ENVELOPE, STATEMENT, statement
from backcast.errors import NotVerified
from backcast.model.document import canonical, sha256
from backcast.model.evidence import Signature, Verified

_NEEDED = (
    "run.json",
    "manifest.json",
    "code.json",
    "chunks.json",
    "verdicts.json",
    "publications.json",
    "approvals.json",
    "events.jsonl",
)


def verify(archive: bytes, key: PublicKey | None = None) -> Verified:
    """What the bundle proves. Raises NotVerified at the first thing that does not fit."""
    files = unpacked(archive)
    payload, envelope = files.pop(STATEMENT, b""), files.pop(ENVELOPE, b"")
    if not payload or not envelope:
        raise NotVerified("the bundle has no statement", hint="it is no evidence of backcast, or was taken apart")
    _check_digests(files, payload)
    if not _made(files, payload):
        raise NotVerified("statement.json does not say what the files say", hint="the bundle was changed")
    signature, signed_with = opened(envelope, payload, key)
    checks = (f"{len(files)} files, each with the SHA-256 that the statement names", *check_files(files))
    return _verified(files, checks, signature, signed_with)


def check_files(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """What holds between the files, one sentence each. Raises NotVerified."""
    missing = [name for name in _NEEDED if name not in files]
    if missing:
        raise NotVerified(f"the bundle lacks {', '.join(missing)}")
    _check_spelling(files)
    try:
        return consistency.checked(files)
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise NotVerified(f"a document of the bundle cannot be read: {type(error).__name__}: {error}") from error


def _check_spelling(files: Mapping[str, bytes]) -> None:
    """Documents are canonical JSON: a name that is there twice means one thing to us and another to other readers.

    The plan is what its hash names, in the spelling of the release that made it.
    """
    for name in sorted(files):
        if not name.endswith(".json") or name == "manifest.json":
            continue
        try:
            ours = canonical(json.loads(files[name])) == files[name]
        except (RecursionError, TypeError, ValueError) as error:
            raise NotVerified(f"a document of the bundle cannot be read: {name}: {error}") from error
        if not ours:
            raise NotVerified(f"{name} is not in the form that backcast writes", file=name)


def _check_digests(files: Mapping[str, bytes], payload: bytes) -> None:
    """First, because it names the file that was changed."""
    try:
        subjects = json.loads(payload)["subject"]
        told = {str(each["name"]): str(each["digest"]["sha256"]) for each in subjects if "annotations" not in each}
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise NotVerified("statement.json is no statement") from error
    missing, extra = sorted(told.keys() - files.keys()), sorted(files.keys() - told.keys())
    if missing or extra:
        what = f"lacks {', '.join(missing)}" if missing else f"holds {', '.join(extra)}, which nobody stated"
        raise NotVerified(f"the bundle {what}")
    for name in sorted(files):
        if sha256(files[name]) != told[name]:
            raise NotVerified(f"{name} was changed: its SHA-256 is not the one that was stated", file=name)


def _made(files: Mapping[str, bytes], payload: bytes) -> bool:
    try:
        return statement(files) == payload
    except (KeyError, RecursionError, TypeError, ValueError):
        return False


def _verified(files: Mapping[str, bytes], checks: tuple[str, ...], signature: Signature, signed_with: str) -> Verified:
    run, identity = json.loads(files["run.json"]), json.loads(files["manifest.json"])["target"]["identity"]
    head = json.loads(files["events.jsonl"].splitlines()[-1])
    return Verified(
        run_id=run["run_id"],
        table=run["table"],
        uuid=str(identity["uuid"]),
        dataset=run["dataset"],
        state=run["state"],
        manifest=run["manifest_sha256"],
        events=head["number"],
        head=head["sha256"],
        files=len(files),
        signature=signature,
        signed_with=signed_with,
        published=versions(files),
        checks=checks,
    )


def versions(files: Mapping[str, bytes]) -> tuple[str, ...]:
    """Of the table that the run's publishes and undos made, in order."""
    found: list[Any] = []
    for each in json.loads(files["publications.json"]):
        found += [each["version"], each.get("undo_version")]
    return tuple(str(version) for version in found if version is not None)
