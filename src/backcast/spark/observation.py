"""What was counted while rows went by. Never waits for ever."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Observation

_SECONDS = 10.0


def asked(observation: Observation) -> dict[str, Any] | None:
    """The numbers, after the action is over; None when they were lost.

    `Observation.get` waits for ever when the optimiser removed its node, so it is asked from a thread with a limit.
    """
    answer: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: answer.append(observation.get), name="observation", daemon=True)
    thread.start()
    thread.join(_SECONDS)
    return answer[0] if answer else None
