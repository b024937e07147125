"""Event time is ended in the logs of a query's checkpoint: for the batch that comes next, and for nothing before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.ending import END_OF_TIME, end_time

_MILLIS = int(END_OF_TIME.timestamp() * 1000)


def checkpoint(root: Path, planned: int, committed: int) -> Checkpoint:
    """With watermarks that say which batch they are of."""
    for name, last in (("offsets", planned), ("commits", committed)):
        (root / name).mkdir()
        for number in range(last + 1):
            said = "batchWatermarkMs" if name == "offsets" else "nextBatchWatermarkMs"
            source = '\n{"orders":{"0":7}}' if name == "offsets" else ""
            (root / name / str(number)).write_text(f'v1\n{{"{said}":{number},"conf":{{"a":"b"}}}}{source}')
            (root / name / f".{number}.crc").write_bytes(b"of what was there")
    return Checkpoint(root)


@pytest.mark.parametrize("planned", [2, 1], ids=["a batch was begun", "no batch was begun"])
def test_the_next_batch_goes_by_the_end_of_time_and_the_others_stay(tmp_path: Path, planned: int) -> None:
    before = checkpoint(tmp_path, planned, 1)
    kept = {each: (tmp_path / each).read_bytes() for each in before.files() if each.name in ("0", ".0.crc")}
    for _ in range(2):
        end_time(tmp_path)
        assert f'"nextBatchWatermarkMs":{_MILLIS},"conf":{{"a":"b"}}' in (tmp_path / "commits" / "1").read_text()
        newest = (tmp_path / "offsets" / str(planned)).read_text()
        assert newest.endswith('\n{"orders":{"0":7}}')
        assert (f'"batchWatermarkMs":{_MILLIS}' in newest) == (planned == 2)
    assert not (tmp_path / "commits" / ".1.crc").exists()
    assert (tmp_path / "offsets" / f".{planned}.crc").exists() == (planned == 1)
    assert kept == {each: (tmp_path / each).read_bytes() for each in kept}
