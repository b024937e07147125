"""Jobs of a run, each by the fencing token of its claim: those that are at work, and those that have committed."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from backcast.model.states import ChunkState, EffectState
from backcast.model.throttle import Throttle
from backcast.store.engine import now
from backcast.store.schema import chunks, effects


def is_full(connection: Connection, run_id: str, throttle: Throttle) -> bool:
    """Whether one job more would be too many. One at work counts as a commit, too: it will be one."""
    most, an_hour = throttle.parallel_jobs, throttle.commits_per_hour
    if most is None and an_hour is None:
        return False
    at_work = _at_work(connection, run_id)
    if most is not None and len(at_work) >= most:
        return True
    return an_hour is not None and len(at_work | committed(connection, run_id).keys()) >= an_hour


def committed(connection: Connection, run_id: str) -> dict[int, datetime]:
    """When each job that committed in the last hour did. The ledger forgets those whose chunks were staged again, the
    effects do not; and they lack one whose process died behind the ledger.
    """
    since = now(connection) - timedelta(hours=1)
    staged = select(chunks.c.token, chunks.c.finished_at).where(
        chunks.c.run_id == run_id, chunks.c.state == ChunkState.STAGED.value, chunks.c.finished_at > since
    )
    landed = select(effects.c.key, effects.c.ended_at).where(
        effects.c.run_id == run_id,
        effects.c.name == "stage.write",
        effects.c.state == EffectState.LANDED.value,
        effects.c.ended_at > since,
    )
    found = {int(key): at for key, at in connection.execute(landed)}
    # Where both know of it, the ledger does exactly: the effect of a killed process ends when the run does.
    return found | {int(token): at for token, at in connection.execute(staged) if token is not None}


def _at_work(connection: Connection, run_id: str) -> set[int]:
    query = select(chunks.c.token).where(chunks.c.run_id == run_id, chunks.c.state == ChunkState.RUNNING.value)
    return {int(token) for token in connection.execute(query.distinct()).scalars() if token is not None}
