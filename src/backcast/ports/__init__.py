"""What the flow asks of the world. Adapters in sources/, targets/, store/ and spark/ answer."""

from __future__ import annotations

from backcast.ports.clock import Clock
from backcast.ports.engine import Engine
from backcast.ports.inputs import Input, LogInput, LogReading, Reading, SharedLog, Sifted, Unusable
from backcast.ports.store import ChunkLedger, EffectLog, Leases, RunReader, RunStore, Store
from backcast.ports.tables import Rest, Source, StageTarget, Target, Turn, no_turn

__all__ = [
    "ChunkLedger",
    "Clock",
    "EffectLog",
    "Engine",
    "Input",
    "Leases",
    "LogInput",
    "LogReading",
    "Reading",
    "Rest",
    "RunReader",
    "RunStore",
    "SharedLog",
    "Sifted",
    "Source",
    "StageTarget",
    "Store",
    "Target",
    "Turn",
    "Unusable",
    "no_turn",
]
