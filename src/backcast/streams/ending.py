"""The end of event time for a query that has read all it is to read: every window closes, every timeout comes.

A row behind the end of all windows would move the watermark only where no filter of the transform takes it out, and
Spark pushes those below the watermark. So the logs of the query's checkpoint, which nobody else has, say that the
watermark is there: the next batch goes by that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from backcast.streams.checkpoint.folder import Checkpoint

END_OF_TIME = datetime(9999, 1, 1, tzinfo=UTC)
_MILLIS = int(END_OF_TIME.timestamp() * 1000)
_SAID = 1
"""The line of a log's file that is a JSON document, behind that of its version."""


def end_time(folder: Path) -> None:
    """For the next batch, whether or not it is planned already. Repeating it changes nothing."""
    checkpoint = Checkpoint(folder)
    planned, committed = checkpoint.planned, checkpoint.committed
    if committed is not None:
        _say(folder / "commits" / str(committed), {"nextBatchWatermarkMs": _MILLIS})
    if planned is not None and planned != committed:
        _say(folder / "offsets" / str(planned), {"batchWatermarkMs": _MILLIS})


def _say(file: Path, what: Mapping[str, int]) -> None:
    lines = file.read_text(encoding="utf-8").split("\n")
    lines[_SAID] = json.dumps({**json.loads(lines[_SAID]), **what}, separators=(",", ":"))
    # Spark checks what it reads against a checksum, where there is one.
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)
    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.write_text("\n".join(lines), encoding="utf-8")
    unfinished.replace(file)
