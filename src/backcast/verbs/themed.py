"""What every theme of verbs has: the project that it works for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backcast.world import World


class Verbs:
    def __init__(self, world: World) -> None:
        self.world = world
