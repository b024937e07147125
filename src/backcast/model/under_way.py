"""Commands of several steps that have begun on a stream and are not over. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from backcast.errors import Refused
from backcast.model import full_replay, stream_backfill
from backcast.model.live import LiveStep, UnderWay, backfill_lease, replay_lease


def under_way(steps: Iterable[LiveStep]) -> UnderWay | None:
    """What is not over; None for nothing. A stream has one of them at a time, or one that it waits for at least."""
    told = tuple(steps)
    replay, backfill = full_replay.unfinished(told), stream_backfill.unfinished(told)
    if replay is not None and (replay.stands or backfill is None or not backfill.stands):
        lease = replay_lease(replay.stream)
        return UnderWay(what="a full replay", again=replay.again, lease=lease, stands=replay.stands)
    if backfill is None:
        return None
    what, lease = f"a backfill of {backfill.start} to {backfill.end}", backfill_lease(backfill.stream)
    return UnderWay(what=what, again=backfill.again, lease=lease, stands=backfill.stands)


def refuse_replayed(name: str, steps: Iterable[LiveStep]) -> None:
    """Raises Refused for a recovery of a stream that a full replay has stopped: its own query goes on as the stream.

    One that a backfill has stopped can be recovered, and may have to be before its checkpoint can be copied.
    """
    told = tuple(steps)
    replay = full_replay.unfinished(told)
    if replay is not None and replay.stands:
        refuse_between(name, told)


def refuse_between(name: str, steps: Iterable[LiveStep]) -> None:
    """Raises Refused for a start of a stream that something has stopped which is not over.

    Between the stop and the exchange of checkpoints of a replay rows would be there twice; in the middle of a paused
    backfill a row of the stream could keep its run from being published, and what was looked at would not be what was.
    """
    found = under_way(steps)
    if found is None or not found.stands:
        return
    raise Refused(
        f"{found.what} has stopped stream {name}, and is not over",
        hint=f"{found.again} goes on with it, and with --give-up ends it; either starts the stream if it ran before",
    )
