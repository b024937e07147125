"""What Spark tells about a batch once it is over, as the store keeps it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from backcast.model.live import LiveBatch

_NO_WATERMARK = "1970-01-01T00:00:00.000Z"


def completed(batch: LiveBatch, told: dict[str, Any], topic: str) -> LiveBatch:
    """The batch with the numbers of Spark's progress about it."""
    watermark = (told.get("eventTime") or {}).get("watermark")
    operators = told.get("stateOperators")
    late = sum(int(each.get("numRowsDroppedByWatermark") or 0) for each in operators or ())
    sources = told.get("sources") or ()
    latest = _offsets(sources[0].get("latestOffset"), topic) if sources else {}
    millis = (told.get("durationMs") or {}).get("triggerExecution")
    return batch.model_copy(
        update={
            "rows_in": int(told.get("numInputRows") or 0),
            "watermark": None if watermark in (None, _NO_WATERMARK) else datetime.fromisoformat(watermark),
            "late_rows": late,
            "operators": None if operators is None else len(operators),
            "log_end": latest,
            "seconds": None if millis is None else millis / 1000,
        }
    )


def _offsets(told: Any, topic: str) -> dict[int, int]:
    """Spark writes them as JSON inside JSON, or not."""
    found = json.loads(told) if isinstance(told, str) else told
    offsets = found.get(topic) if isinstance(found, dict) else None
    return {int(key): int(value) for key, value in offsets.items()} if isinstance(offsets, dict) else {}
