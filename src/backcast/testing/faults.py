"""End the process at a named point: the crash suite's trigger, armed in-process or through the environment.

BACKCAST_FAULT=publish.after-commit:python     SIGKILL to this process when it reaches the point
BACKCAST_FAULT=chunk.before-commit#2:jvm       the driver's JVM, at the second pass
BACKCAST_FAULT=publish.before-commit:both      JVM first, then this process
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from backcast import faults
from backcast.errors import InvalidRequest
from backcast.faults import ALL_POINTS

VARIABLE = "BACKCAST_FAULT"
KILLS = ("python", "jvm", "both")


class SimulatedCrash(BaseException):
    """Not an Exception: nothing in the product may catch it and tidy up, just as nothing survives SIGKILL."""


def nothing(point: str) -> None:
    """What others do at a point when they do nothing."""


@contextmanager
def crash_at(point: str, occurrence: int = 1, meanwhile: Callable[[str], None] = nothing) -> Iterator[list[str]]:
    """Raise SimulatedCrash at the given pass of the point; the list collects every point reached.

    `meanwhile` is what others do at every point, before the crash.
    """
    reached: list[str] = []

    def hook(name: str) -> None:
        reached.append(name)
        meanwhile(name)
        if name == point and reached.count(name) == occurrence:
            raise SimulatedCrash(name)

    _known(point)
    with _armed(hook):
        yield reached


@contextmanager
def trace(meanwhile: Callable[[str], None] = nothing) -> Iterator[list[str]]:
    """Collect every point reached; nothing is killed."""
    reached: list[str] = []

    def hook(name: str) -> None:
        reached.append(name)
        meanwhile(name)

    with _armed(hook):
        yield reached


@contextmanager
def at_point(point: str, action: Callable[[], None], occurrence: int = 1) -> Iterator[list[str]]:
    """Do something, once, at the given pass of the point: what another process might do at that very moment."""
    reached: list[str] = []

    def hook(name: str) -> None:
        reached.append(name)
        if name == point and reached.count(name) == occurrence:
            action()

    _known(point)
    with _armed(hook):
        yield reached


def arm_from_environment() -> None:
    """Arm the kill that BACKCAST_FAULT asks for; nothing when it is not set."""
    text = os.environ.get(VARIABLE)
    if not text:
        return
    place, _, kill = text.partition(":")
    point, _, number = place.partition("#")
    _known(point)
    if kill not in KILLS:
        raise InvalidRequest(f"{VARIABLE}={text}: expected POINT[#N]:{'|'.join(KILLS)}")
    occurrence, seen = int(number or 1), 0

    def hook(name: str) -> None:
        nonlocal seen
        seen += name == point
        if name == point and seen == occurrence:
            _kill(kill)

    faults.arm(hook)


def _kill(kill: str) -> None:
    if kill in ("jvm", "both"):
        pid = _jvm_pid()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
    if kill in ("python", "both"):
        os.kill(os.getpid(), signal.SIGKILL)


def _jvm_pid() -> int | None:
    from backcast.spark.processes import jvm_identity
    from backcast.spark.session import active_session

    spark = active_session()
    return None if spark is None else jvm_identity(spark).pid


def _known(point: str) -> None:
    if point not in ALL_POINTS:
        raise InvalidRequest(f"no fault point is called {point!r}", hint=f"known: {', '.join(ALL_POINTS)}")


@contextmanager
def _armed(hook: Callable[[str], None]) -> Iterator[None]:
    faults.arm(hook)
    try:
        yield
    finally:
        faults.arm(None)
