"""Checkpoints in the form in which Spark 4.0 writes them, without state."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

QUERY = "3f1c7a52-6a0e-4d1e-9c59-0f3a3b5d1c11"
DAY = 1_767_225_600_000


def write(file: Path, content: str | bytes) -> None:
    """With the checksum beside it that Hadoop writes."""
    data = content.encode() if isinstance(content, str) else content
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    sums = b"".join(zlib.crc32(data[at : at + 512]).to_bytes(4, "big") for at in range(0, len(data), 512))
    (file.parent / f".{file.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)


def offsets(ends: dict[str, Any], watermark: int = 0, **conf: str) -> str:
    header = {
        "batchWatermarkMs": watermark,
        "batchTimestampMs": DAY,
        "conf": {"spark.sql.shuffle.partitions": "2", **conf},
    }
    return f"v1\n{json.dumps(header)}\n{json.dumps(ends)}"


def commit(watermark: int = 0) -> str:
    return f'v1\n{{"nextBatchWatermarkMs":{watermark}}}'


def new_checkpoint(root: Path, batches: int = 5, planned: int = 0, *, watermark: bool = False) -> Path:
    """Of a query over one topic: each batch takes ten records of each of two partitions, and ten seconds of time."""
    passed = 10_000 if watermark else 0
    day = DAY if watermark else 0
    write(root / "metadata", json.dumps({"id": QUERY}))
    write(root / "sources/0/0", b'\0v1\n{"orders":{"0":0,"1":0}}')
    for number in range(batches + planned):
        end = 10 * (number + 1)
        reached = day + passed * number if number else 0
        write(root / f"offsets/{number}", offsets({"orders": {"0": end, "1": end}}, reached))
        if number < batches:
            write(root / f"commits/{number}", commit(day + passed * (number + 1)))
    return root
