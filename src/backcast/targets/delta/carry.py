"""Chunks that one stage takes over from an earlier one of the same run: files change hands, no data is touched."""

from __future__ import annotations

import time
from typing import Any

from backcast import faults
from backcast.errors import Conflict, StateConflict
from backcast.model.table import Carry, Stage
from backcast.spark.delta.commit import removal
from backcast.spark.delta.handle import DeltaHandle, Version
from backcast.spark.gateway import find_cause
from backcast.targets.delta.commits import carry_note
from backcast.targets.delta.publish import NOT_LANDED


def carry(handle: DeltaHandle, stage: Stage, wanted: Carry) -> None:
    """One commit on the stage, which fails when anybody else wrote to it meanwhile."""
    faults.point("restage.before-carry")
    log = handle.stage_log(stage.branch)
    here = Version(handle, log, handle.jvm.snapshot(log, None), stage.branch)
    if here.number < 0:
        raise StateConflict(f"there is no stage {stage.branch}", hint="run the same command again")
    transaction = handle.jvm.transaction(log, here.snapshot)
    # Tokens never repeat, so the first one names the carry.
    fence = f"backcast:{stage.run_id}:{wanted.commits[0][0]}"
    if transaction.txnVersion(fence) < 0:
        handle.jvm.register_read(transaction, None)
        actions = [*_actions(here, handle.at(wanted.source), wanted), {"txn": {"appId": fence, "version": 1}}]
        try:
            handle.jvm.commit(transaction, actions, carry_note(stage.run_id, wanted.commits))
        except Exception as error:
            if find_cause(error, NOT_LANDED) is None:
                raise
            raise Conflict("another process wrote to this run's stage meanwhile", hint="run it again") from error
    faults.point("restage.after-carry")


def _actions(here: Version, source: Version, wanted: Carry) -> list[dict[str, Any]]:
    """Paths in the stage's own log: as they are there for what goes, absolute for what comes."""
    mine, theirs = here.files(wanted.predicate), source.files(wanted.predicate)
    now = int(time.time() * 1000)
    gone = [mine[path].add for path in sorted(mine.keys() - theirs.keys())]
    come = [theirs[path].add for path in sorted(theirs.keys() - mine.keys())]
    return [
        *(removal(add, now) for add in gone),
        *({"add": {**add, "path": source.root.absolute(add["path"]), "dataChange": True}} for add in come),
    ]
