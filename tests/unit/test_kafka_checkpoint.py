"""How far a stream has read, from files in the form in which Spark 4.0 writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.errors import InvalidRequest
from backcast.sources.kafka.checkpoint import checkpoint_position

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1767225600000,"conf":{"spark.sql.shuffle.partitions":"2"}}'
COMMIT = 'v1\n{"nextBatchWatermarkMs":0}'


def batch(root: Path, number: int, *sources: str, committed: bool = True) -> None:
    for name in ("offsets", "commits"):
        (root / name).mkdir(exist_ok=True)
    (root / "offsets" / str(number)).write_text("\n".join(("v1", METADATA, *sources)))
    (root / "offsets" / f".{number}.crc").write_bytes(b"\0crc")
    if committed:
        (root / "commits" / str(number)).write_text(COMMIT)
        (root / "commits" / f".{number}.crc").write_bytes(b"\0crc")


def test_the_newest_committed_batch_counts_and_not_one_that_is_only_planned(tmp_path: Path) -> None:
    batch(tmp_path, 9, '{"orders":{"0":5,"1":7}}')
    batch(tmp_path, 10, '{"orders":{"1":70,"0":50}}')
    batch(tmp_path, 11, '{"orders":{"0":500,"1":700}}', committed=False)
    assert checkpoint_position(tmp_path, "orders") == {0: 50, 1: 70}
    assert checkpoint_position(f"file:{tmp_path}", "orders") == {0: 50, 1: 70}
    assert checkpoint_position(f"file://{tmp_path}", "orders") == {0: 50, 1: 70}


def test_the_topic_is_found_by_its_name_wherever_its_source_stands(tmp_path: Path) -> None:
    batch(tmp_path, 0, '{"logOffset":3}', "-", '{"others":{"0":1}}', '{"orders":{"0":50},"refunds":{"0":2}}', "42")
    assert checkpoint_position(tmp_path, "orders") == {0: 50}
    assert checkpoint_position(tmp_path, "refunds") == {0: 2}


def test_two_sources_on_one_topic_must_agree(tmp_path: Path) -> None:
    batch(tmp_path, 0, '{"orders":{"0":50}}', '{"orders":{"0":50}}')
    assert checkpoint_position(tmp_path, "orders") == {0: 50}
    batch(tmp_path, 1, '{"orders":{"0":60}}', '{"orders":{"0":61}}')
    with pytest.raises(InvalidRequest, match=r"offsets/1: lines 3, 4 read topic 'orders' up to different offsets"):
        checkpoint_position(tmp_path, "orders")


def test_a_folder_that_is_no_checkpoint_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="is no checkpoint"):
        checkpoint_position(tmp_path / "nowhere", "orders")
    with pytest.raises(InvalidRequest, match="only checkpoints on a local disk"):
        checkpoint_position("s3a://bucket/checkpoint", "orders")
    batch(tmp_path, 0, '{"orders":{"0":1}}', committed=False)
    with pytest.raises(InvalidRequest, match="has not completed a batch yet"):
        checkpoint_position(tmp_path, "orders")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "offsets/4: the offsets of a completed batch are not there"),
        ("", "offsets/4: it is empty"),
        ("v9\n{}\n{}", "offsets/4: offsets v9 is newer than v1, v2, which this version reads"),
        ("1v\n{}\n{}", "offsets/4: it begins with '1v', not v1"),
        ("v1", "offsets/4: it ends before the offsets of any source"),
        (f"v1\n{METADATA}\n{{garbled", "offsets/4, line 3: it is not JSON"),
        (f'v1\n{METADATA}\n{{"orders":{{"0":"x"}}}}', "offsets/4, line 3, partition 0: 'x' is not an offset"),
        (f'v1\n{METADATA}\n{{"orders":{{"0":-1}}}}', "offsets/4, line 3: topic 'orders' has no literal offsets"),
        (f'v1\n{METADATA}\n{{"others":{{"0":1}}}}', "offsets/4: the query does not read topic 'orders'"),
        (f"v1\n{METADATA}", "offsets/4: it ends before the offsets of any source"),
    ],
)
def test_a_damaged_file_is_named_and_no_older_one_is_taken_instead(
    tmp_path: Path, content: str | None, message: str
) -> None:
    batch(tmp_path, 3, '{"orders":{"0":1}}')
    batch(tmp_path, 4, '{"orders":{"0":2}}')
    file = tmp_path / "offsets" / "4"
    file.unlink() if content is None else file.write_text(content)
    with pytest.raises(InvalidRequest, match=message):
        checkpoint_position(tmp_path, "orders")


def test_a_garbled_commit_proves_nothing(tmp_path: Path) -> None:
    batch(tmp_path, 3, '{"orders":{"0":1}}')
    (tmp_path / "commits" / "3").write_text("")
    with pytest.raises(InvalidRequest, match="commits/3: it is empty"):
        checkpoint_position(tmp_path, "orders")
