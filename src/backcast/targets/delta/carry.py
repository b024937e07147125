"""Chunks that one stage takes over from an earlier one of the same run: files change hands.

No data is touched, unless commits of exact files are not proven on this version of Delta: then it is written once more.
"""

from __future__ import annotations

import time
from typing import Any

from backcast import faults
from backcast.errors import Conflict, StateConflict
from backcast.model.table import Carry, Stage
from backcast.spark.delta.commit import removal
from backcast.spark.delta.fit import committing_problem
from backcast.spark.delta.handle import DeltaHandle, Version
from backcast.spark.gateway import find_cause
from backcast.spark.predicates import to_sql
from backcast.targets.delta.commits import carry_note
from backcast.targets.delta.publish import NOT_LANDED
from backcast.targets.delta.replace_where import replace_where

_LANDED = 1
"""The version of a carry's transaction id."""


def carry(handle: DeltaHandle, stage: Stage, wanted: Carry) -> None:
    """One commit on the stage, which fails when anybody else wrote to it meanwhile."""
    faults.point("restage.before-carry")
    log = handle.stage_log(stage.branch)
    here = Version(handle, log, handle.jvm.snapshot(log, None), stage.branch)
    if here.number < 0:
        raise StateConflict(f"there is no stage {stage.branch}", hint="run the same command again")
    # Tokens never repeat, so the first one names the carry.
    fence, note = f"backcast:{stage.run_id}:{wanted.commits[0][0]}", carry_note(stage.run_id, wanted.commits)
    try:
        if committing_problem(handle.jvm) is None:
            _swap(handle, here, wanted, fence, note)
        else:
            _rewrite(handle, here, wanted, fence, note)
    except Exception as error:
        if find_cause(error, NOT_LANDED) is None:
            raise
        raise Conflict("another process wrote to this run's stage meanwhile", hint="run it again") from error
    faults.point("restage.after-carry")


def _swap(handle: DeltaHandle, here: Version, wanted: Carry, fence: str, note: str) -> None:
    transaction = handle.jvm.transaction(here.log, here.snapshot)
    if handle.jvm.read_fence(transaction, fence) is not None:
        return
    handle.jvm.register_read(transaction, None)
    actions = [*_actions(here, handle.at(wanted.source), wanted), {"txn": {"appId": fence, "version": _LANDED}}]
    handle.jvm.commit(transaction, actions, note)


def _rewrite(handle: DeltaHandle, here: Version, wanted: Carry, fence: str, note: str) -> None:
    source = handle.at(wanted.source)
    rows = source.frame(file.add for file in source.files(wanted.predicate).values())
    writer = replace_where(rows, to_sql(wanted.predicate, source.layout.types), note, (fence, _LANDED))
    writer.save(here.root.path)


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
