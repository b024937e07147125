"""A consistent copy of a checkpoint with its own hashes, also of a stream that runs."""

from __future__ import annotations

import os
import shutil
from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from backcast.errors import Failed, InvalidRequest, NotVerified
from backcast.model.checkpoint import BACKUP_VERSION, BackedUpFile, Backup, BackupManifest, Severity
from backcast.model.document import sha256
from backcast.streams.checkpoint.copying import Chosen, copy_files, everything, hash_of, refuse_existing, up_to
from backcast.streams.checkpoint.damage import damages_of
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.life import signature
from backcast.streams.checkpoint.lost_state import STATE_UNKNOWN

MANIFEST, COPY = "backup.json", "checkpoint"
_ATTEMPTS = 8


def backup(root: Path, to: Path | None, now: datetime) -> Backup:
    """Copy the checkpoint as it is, or, when it is being written to, at its newest committed batch.

    Nothing but a complete backup ever has the name that is told. Raises Failed when the stream is too fast.
    """
    if to is not None:
        refuse_existing(to)
    home = root.parent / f"{root.name}.backups" if to is None else to.parent
    home.mkdir(parents=True, exist_ok=True)
    making = home / f".making-{os.getpid()}-{now:%Y%m%dT%H%M%S%f}"
    try:
        for attempt in range(1, _ATTEMPTS + 1):
            shutil.rmtree(making, ignore_errors=True)
            running = attempt > 1
            if _copied(root, making / COPY, running=running):
                return _finished(root, making, to or home / _name(making, now), now, attempt)
        raise Failed(
            f"the files of {root} changed {_ATTEMPTS} times while they were copied", hint="type the same command again"
        )
    finally:
        shutil.rmtree(making, ignore_errors=True)


def read_manifest(folder: Path) -> BackupManifest:
    """Raises InvalidRequest for a folder that is no backup, and for one of a newer version."""
    try:
        found = BackupManifest.model_validate_json((folder / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise InvalidRequest(f"{folder} is no backup: it has no {MANIFEST}", hint="name what `backup` wrote") from None
    except (OSError, ValidationError) as error:
        raise InvalidRequest(f"{folder / MANIFEST} cannot be read", hint="take another backup") from error
    if found.version > BACKUP_VERSION:
        raise InvalidRequest(f"{folder} is a backup of version {found.version}", hint="use a newer backcast")
    return found


def verify_backup(folder: Path) -> BackupManifest:
    """The manifest, once every file is there with its hash and nothing else is. Raises NotVerified."""
    manifest = read_manifest(folder)
    there = {str(each): folder / COPY / each for each in Checkpoint(folder / COPY).files()}
    wrong = sorted(set(there) ^ set(manifest.files))
    wrong += [name for name, told in manifest.files.items() if name in there and hash_of(there[name]) != told.sha256]
    if wrong:
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        raise NotVerified(
            f"{folder}: {wrong[0]}{more} is not what was backed up", hint="take another backup; this one was changed"
        )
    return manifest


def _copied(root: Path, to: Path, *, running: bool) -> bool:
    """Whether the copy is one of a single moment, or of a boundary between batches."""
    checkpoint = Checkpoint.at(root)
    before = signature(checkpoint)
    chosen: Chosen = everything
    if running and checkpoint.committed is not None:
        planned = checkpoint.committed + 1
        chosen = up_to(checkpoint.committed, planned if planned in checkpoint.offsets else None)
    try:
        copy_files(checkpoint, to, chosen, vanishing=running)
    except FileNotFoundError:
        return False
    if signature(Checkpoint(root)) == before:
        return True
    found = (each for each in damages_of(Checkpoint(to)) if each.kind != STATE_UNKNOWN)
    return running and all(each.severity is Severity.HARMLESS for each in found)


def _name(making: Path, now: datetime) -> str:
    batch = Checkpoint(making / COPY).committed
    return f"{now:%Y%m%dT%H%M%SZ}-batch-{'none' if batch is None else batch}"


def _finished(root: Path, making: Path, to: Path, now: datetime, attempts: int) -> Backup:
    copy = Checkpoint(making / COPY)
    files = {
        str(each): BackedUpFile(sha256=hash_of(copy.root / each), size=(copy.root / each).stat().st_size)
        for each in copy.files()
    }
    manifest = BackupManifest(
        source=str(root),
        query_id=copy.readable_id(),
        batch=copy.committed,
        planned=copy.planned,
        made_at=now,
        running=attempts > 1,
        files=files,
    )
    with (making / MANIFEST).open("wb") as stream:
        stream.write(manifest.canonical())
        stream.flush()
        os.fsync(stream.fileno())
    refuse_existing(to)
    making.rename(to)
    return Backup(
        path=str(to),
        checkpoint=str(root),
        batch=manifest.batch,
        planned=manifest.planned,
        files=len(files),
        size=sum(each.size for each in files.values()),
        running=manifest.running,
        attempts=attempts,
        sha256=sha256(manifest.canonical()),
        damages=tuple(
            each
            for each in damages_of(Checkpoint(to / COPY))
            if each.severity is not Severity.HARMLESS and each.kind != STATE_UNKNOWN
        ),
    )
