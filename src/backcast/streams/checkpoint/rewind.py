"""A checkpoint goes back to an earlier batch: a truncated copy is proven, then takes its place."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from backcast.model.checkpoint import Change
from backcast.streams.checkpoint.change import Checks, already, id_of, positions_after, proven, run_again
from backcast.streams.checkpoint.copying import copy_files, forget_listed_files, up_to
from backcast.streams.checkpoint.exchange import Exchange
from backcast.streams.checkpoint.folder import Checkpoint


def rewind(root: Path, choose: Callable[[Checkpoint], int], checks: Checks, now: datetime) -> Change:
    """The checkpoint as it was after the chosen batch, in its place; the one before is kept aside.

    State that later batches left is no part of it: Spark would load it once it comes to their numbers again.
    """
    exchange = Exchange(root)
    finished = exchange.finish_interrupted()
    checkpoint = Checkpoint.at(root, checks.told)
    batch = choose(checkpoint)
    query_id = id_of(checkpoint)
    if checkpoint.planned == checkpoint.committed == batch and not _has_later(checkpoint, batch):
        return already("rewind", checkpoint, exchange, finished=finished)
    prediction = checks.predict(query_id, batch + 1, run_again(checkpoint, batch))
    with exchange.building() as building:
        removed = copy_files(checkpoint, building, up_to(batch))
        notes = forget_listed_files(building, batch)
        loaded = proven(Checkpoint(building, checks.told), batch, checks)
    kept = exchange.exchange("rewind", now)
    return Change(
        action="rewind",
        path=str(root),
        query_id=query_id,
        batch=batch,
        sources=positions_after(Checkpoint(root), batch),
        kept=None if kept is None else str(kept),
        proven=loaded,
        removed=removed,
        sink=prediction,
        notes=notes,
    )


def _has_later(checkpoint: Checkpoint, batch: int) -> bool:
    stores = (store for operator in checkpoint.operators for store in operator.stores)
    return any(each.version > batch + 1 for store in stores for each in store.files)
