"""Whether a stream that somebody else runs seems to be alive, by its files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from backcast.errors import Conflict
from backcast.ports import Clock
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.look import last_written

_BETWEEN_LOOKS = 2.0
_RECENT = 60.0


@dataclass(frozen=True, slots=True)
class Signs:
    """What two looks saw."""

    moving: bool
    """Files changed between them."""
    last: datetime | None
    recent: bool


def signs_of_life(checkpoint: Checkpoint, clock: Clock, seconds: float = _BETWEEN_LOOKS) -> Signs:
    """Two looks, a moment apart. A stream that waits for records shows none."""
    before = signature(checkpoint)
    clock.sleep(seconds)
    after = Checkpoint(checkpoint.root)
    last = last_written(after)
    recent = last is not None and (clock.now() - last).total_seconds() < _RECENT
    return Signs(moving=signature(after) != before, last=last, recent=recent)


def refuse_running(checkpoint: Checkpoint, clock: Clock, *, stopped: bool, seconds: float = _BETWEEN_LOOKS) -> None:
    """Raises Conflict while files move, and as long as nobody says that the stream is stopped."""
    signs = signs_of_life(checkpoint, clock, seconds)
    if signs.moving:
        raise Conflict(
            f"the stream is running: files of {checkpoint.root} change right now", hint="stop it, then type this again"
        )
    if stopped:
        return
    last = "never" if signs.last is None else f"{signs.last:%Y-%m-%d %H:%M:%S} UTC"
    seems = "the stream may be running" if signs.recent else "nobody can see whether the stream is stopped"
    raise Conflict(f"{seems}; last written to: {last}", hint="stop it, make sure that it is, and add --stopped")


def signature(checkpoint: Checkpoint) -> dict[str, tuple[int, int]]:
    """Size and time of every file that is there."""
    found = {}
    for file in checkpoint.files():
        try:
            told = (checkpoint.root / file).stat()
        except OSError:
            continue
        found[str(file)] = (told.st_size, told.st_mtime_ns)
    return found
