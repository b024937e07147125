"""What a backup holds takes the place of a checkpoint."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from backcast.errors import Failed, Refused
from backcast.model.checkpoint import Change, Severity
from backcast.streams.checkpoint.backup import COPY, read_manifest, verify_backup
from backcast.streams.checkpoint.change import Checks, already, positions_after, run_again
from backcast.streams.checkpoint.copying import copy_files, hash_of
from backcast.streams.checkpoint.damage import damages_of
from backcast.streams.checkpoint.exchange import Exchange
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.lost_state import STATE_UNKNOWN


def restore(root: Path, folder: Path, checks: Checks, now: datetime) -> Change:
    """The backup, every hash of which fits, in the place of the checkpoint, which is kept aside."""
    manifest = verify_backup(folder)
    exchange = Exchange(root)
    finished = exchange.finish_interrupted()
    if root.exists() and _equals(root, folder):
        return already("restore", Checkpoint(root), exchange, finished=finished)
    copy = Checkpoint(folder / COPY, checks.told)
    if manifest.query_id is None:
        raise Refused(f"{folder} has no query id: its `metadata` was damaged already", hint="take another backup")
    again = run_again(Checkpoint(root), copy.next_batch - 1) if root.exists() else 0
    prediction = checks.predict(manifest.query_id, copy.next_batch, again)
    with exchange.building() as building:
        copy_files(copy, building)
        _refuse_unequal(building, folder)
    kept = exchange.exchange("restore", now)
    return Change(
        action="restore",
        path=str(root),
        query_id=manifest.query_id,
        batch=manifest.batch,
        sources=positions_after(Checkpoint(root), manifest.batch),
        kept=None if kept is None else str(kept),
        sink=prediction,
        notes=tuple(
            f"{'' if each.kind == STATE_UNKNOWN else 'damaged in the backup already: '}{each.file}: {each.what}"
            for each in damages_of(copy)
            if each.severity is not Severity.HARMLESS
        ),
    )


def _refuse_unequal(building: Path, folder: Path) -> None:
    if not _equals(building, folder):
        raise Failed(f"the copy of {folder} is not equal to it", hint="type the same command again")


def _equals(root: Path, folder: Path) -> bool:
    told = read_manifest(folder).files
    there = {str(each): root / each for each in Checkpoint(root).files()}
    return set(there) == set(told) and all(hash_of(file) == told[name].sha256 for name, file in there.items())
