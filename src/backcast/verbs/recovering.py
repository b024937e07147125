"""Verbs that find what a stream has not read, what a dataset lacks, and what came too late."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.lag import StreamLag


class RecoveringVerbs(Verbs):
    def stream_lag(self, stream: str, *, topic: str | None = None) -> StreamLag:
        """How far a declared stream is behind, or with a topic the stream of any checkpoint. Needs no Spark."""
        return self.world.stream_lag(stream, topic)
