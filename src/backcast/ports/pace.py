"""How what computes much asks when it may go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from backcast.model.throttle import Throttle, Work


class Pace(Protocol):
    """Of one process. It decides when the next job begins, never what that computes."""

    def in_force(self) -> Throttle:
        """What it goes by now."""

    def before_a_job(self) -> None:
        """Rest as the job before asks for, then until one may begin. Raises when this process may not go on."""

    def after_a_job(self, work: Work) -> None:
        """What the job did. Returns at once."""

    def rest(self) -> None:
        """As the job before asks for, if nobody has rested for it yet."""
