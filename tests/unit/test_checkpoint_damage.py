"""Damage to the logs of a checkpoint is found, and told with what Spark was seen to do about it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from backcast.errors import Refused
from backcast.model.checkpoint import Severity
from backcast.streams.checkpoint.change import Checks
from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.fork import fork_at_batch
from backcast.streams.checkpoint.history import history
from backcast.streams.checkpoint.look import inspect
from backcast.streams.checkpoint.point import Point, find_batch
from backcast.streams.checkpoint.rewind import rewind
from tests.unit.checkpoints import DAY, commit, new_checkpoint, offsets, write
from tests.unit.test_checkpoint_copies import NOW, bytes_of

F, S, H, U = Severity.FAILS, Severity.SILENT, Severity.HARMLESS, Severity.UNKNOWN
Spoil = Callable[[Path], object]


def gone(*files: str) -> Spoil:
    def spoil(root: Path) -> None:
        for file in files:
            (root / file).unlink()
            (root / file).with_name(f".{Path(file).name}.crc").unlink()

    return spoil


def holds(file: str, content: str | bytes) -> Spoil:
    return lambda root: write(root / file, content)


def bare(file: Path, ends: dict[str, dict[str, int]]) -> None:
    """Edited by hand, with no checksum that could tell."""
    file.write_text(offsets(ends))


CASES: dict[str, tuple[Spoil, set[tuple[str, str, Severity]], int | None]] = {
    "nothing": (lambda _: None, set(), 4),
    "the last offsets are missing": (gone("offsets/4"), {("commit-ahead", "offsets/4", S)}, 3),
    "the offsets before the last are missing": (gone("offsets/3"), {("offsets-missing", "offsets/3", F)}, 4),
    "all offsets are missing": (gone(*(f"offsets/{n}" for n in range(5))), {("offsets-missing", "offsets", S)}, None),
    "old offsets are missing": (gone("offsets/1"), {("offsets-gap", "offsets/1", H)}, 4),
    "the last commit is missing, as after a kill": (gone("commits/4"), set(), 3),
    "two commits are missing": (gone("commits/3", "commits/4"), {("commits-behind", "commits/3", S)}, 2),
    "a commit in the middle is missing": (gone("commits/2"), {("commits-gap", "commits/2", H)}, 4),
    "empty offsets": (holds("offsets/4", ""), {("log-empty", "offsets/4", F)}, 3),
    "offsets without sources": (holds("offsets/4", "v1\n{}"), {("log-shape", "offsets/4", F)}, 3),
    "an empty commit": (holds("commits/4", ""), {("log-empty", "commits/4", F)}, 3),
    "a bad version": (holds("offsets/4", "x1\n{}\n{}"), {("log-version", "offsets/4", F)}, 3),
    "a newer version": (holds("commits/4", "v7\n{}"), {("log-newer", "commits/4", U)}, 3),
    "bad JSON": (holds("offsets/3", "v1\n{}\n{nope"), {("log-json", "offsets/3", F)}, 4),
    "bad JSON of long ago": (holds("offsets/0", "v1\n{}\n{nope"), {("log-json", "offsets/0", H)}, 4),
    "a commit that says nothing": (holds("commits/4", "v1\n{}"), set(), 4),
    "a line break at the end": (
        lambda root: write(root / "offsets/4", (root / "offsets/4").read_text() + "\n"),
        set(),
        4,
    ),
    "one source too many": (
        lambda root: write(root / "offsets/4", (root / "offsets/4").read_text() + "\n-"),
        {("sources", "offsets/4", F)},
        4,
    ),
    "no metadata": (gone("metadata"), {("metadata-missing", "metadata", S)}, 4),
    "empty metadata": (holds("metadata", ""), {("metadata-empty", "metadata", F)}, 4),
    "garbled metadata": (holds("metadata", '{"id":'), {("metadata-json", "metadata", F)}, 4),
    "metadata that is no text": (holds("metadata", b"\xff\xfe"), {("metadata-version", "metadata", F)}, 4),
    "no start of the source": (gone("sources/0/0"), set(), 4),
    "a garbled start of the source": (holds("sources/0/0", "x"), {("source-start", "sources/0/0", F)}, 4),
    "an edited offset": (
        lambda root: (root / "offsets/4").write_text(offsets({"orders": {"0": 49, "1": 50}})),
        {("changed", "offsets/4", S)},
        3,
    ),
    "an old commit that was edited": (
        lambda root: (root / "commits/1").write_text(commit(7)),
        {("changed", "commits/1", H)},
        4,
    ),
    "offsets that go back, without a checksum": (
        lambda root: (gone("offsets/4")(root), bare(root / "offsets/4", {"orders": {"0": 50, "1": 35}})),
        {("offsets-out-of-step", "offsets/4", S)},
        3,
    ),
    "a partition that is gone": (
        lambda root: (gone("offsets/4")(root), bare(root / "offsets/4", {"orders": {"0": 50}})),
        {("offsets-out-of-step", "offsets/4", S)},
        3,
    ),
    "another topic": (
        lambda root: (gone("offsets/4")(root), bare(root / "offsets/4", {"returns": {"0": 50, "1": 50}})),
        {("offsets-out-of-step", "offsets/4", S)},
        3,
    ),
    "offsets that went back long ago": (
        lambda root: (gone("offsets/2")(root), bare(root / "offsets/2", {"orders": {"0": 1, "1": 30}})),
        {("offsets-out-of-step", "offsets/2", H)},
        4,
    ),
    "a partition that was added": (
        lambda root: write(root / "offsets/4", offsets({"orders": {"0": 50, "1": 50, "2": 7}})),
        set(),
        4,
    ),
    "a folder in the place of offsets": (
        lambda root: (gone("offsets/4")(root), (root / "offsets/4").mkdir()),
        {("log-unreadable", "offsets/4", F)},
        3,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_damage_is_found_and_so_is_the_newest_batch_that_is_whole(tmp_path: Path, case: str) -> None:
    spoil, expected, whole = CASES[case]
    root = new_checkpoint(tmp_path / "checkpoint")
    spoil(root)
    found = verify(Checkpoint.at(root))
    assert {(each.kind, each.file, each.severity) for each in found.damages} == expected
    assert found.recoverable == whole
    assert all(each.at_restart for each in found.damages)
    assert all(each.remedy for each in found.damages if each.severity in (F, S))


@pytest.mark.parametrize("seed", range(20))
def test_whatever_the_bytes_looking_never_fails(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - damage, not secrets
    root = new_checkpoint(tmp_path / "checkpoint", planned=1)
    for file in chance.sample([each for each in sorted(root.rglob("*")) if each.is_file()], 4):
        data = bytearray(file.read_bytes())
        for _ in range(chance.randint(1, 5)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file.write_bytes(bytes(data[: chance.randrange(len(data) + 1)] if chance.random() < 0.3 else data))
    checkpoint = Checkpoint.at(root)
    verify(checkpoint).as_json()
    inspect(checkpoint).as_json()
    history(checkpoint).as_json()


def lz4(rows: bytes = b"") -> bytes:
    """A delta of no row, as Spark writes it: one empty block."""
    return b"LZ4Block" + bytes([0x16]) + bytes(12) + rows


def schema(*columns: str, version: str = "v1") -> bytes:
    keys = json.dumps({"type": "struct", "fields": [{"name": each, "type": "string"} for each in columns]})
    pieces = [version, keys, json.dumps({"type": "struct", "fields": []})]
    return b"".join(len(each).to_bytes(2, "big") + each.encode() for each in pieces)


def metadata(operator: int, partitions: int = 2, version: str = "v1") -> str:
    stores = [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}]
    info = {"operatorInfo": {"operatorId": operator, "operatorName": "stateStoreSave"}, "stateStoreInfo": stores}
    return f"{version}\n{json.dumps(info)}"


def with_state(root: Path, operators: int = 2, partitions: int = 2, *, keys: tuple[str, ...] = ("shop",)) -> Path:
    """Of a query whose operators keep state in this many partitions each; its sixth batch only closed windows."""
    new_checkpoint(root, watermark=True)
    for operator in range(operators):
        home = root / f"state/{operator}"
        write(home / "_metadata/metadata", metadata(operator))
        write(home / "0/_metadata/schema", schema(*keys))
        for partition in range(partitions):
            for version in range(1, 6):
                write(home / f"{partition}/{version}.delta", lz4())
    return root


def closed(root: Path) -> Path:
    """Its last batch had no records."""
    write(root / "offsets/5", (root / "offsets/4").read_text())
    write(root / "commits/5", commit(DAY))
    return root


def without(*folders: str) -> Spoil:
    return lambda root: [shutil.rmtree(root / each) for each in folders]


LOST: dict[str, tuple[Spoil, int | None, set[tuple[str, str, Severity]]]] = {
    "nothing": (lambda _: None, None, set()),
    "all state, by the record of the stream": (
        without("state"),
        2,
        {("state-missing", "state/0", F), ("state-missing", "state/1", F)},
    ),
    "all state, of a query that closed windows": (
        lambda root: (without("state")(root), closed(root)),
        None,
        {("state-missing", "state", F)},
    ),
    "all state, and nobody can tell": (without("state"), None, {("state-unknown", "state", U)}),
    "no state, and there never was any": (without("state"), 0, set()),
    "the highest operator, by the record": (without("state/1"), 2, {("state-missing", "state/1", F)}),
    "the lowest operator": (without("state/0"), None, {("state-missing", "state/0", F)}),
    "a partition": (without("state/1/1"), None, {("state-missing", "state/1/1", F)}),
    "a partition and the operator's metadata": (
        without("state/1/1", "state/1/_metadata"),
        None,
        {("state-missing", "state/1/1", F)},
    ),
    "the first partition and the metadata": (
        without("state/0/0", "state/0/_metadata"),
        None,
        {("state-missing", "state/0/0", F)},
    ),
    "files of a partition": (
        lambda root: [each.unlink() for each in (root / "state/0/1").glob("*.delta")],
        None,
        {("state-missing", "state/0/1", F)},
    ),
    "the metadata, which a restart does not need": (without("state/0/_metadata"), None, set()),
}


@pytest.mark.parametrize("case", LOST)
def test_state_of_which_nothing_is_left_is_missed(tmp_path: Path, case: str) -> None:
    spoil, told, expected = LOST[case]
    root = with_state(tmp_path / "checkpoint")
    spoil(root)
    found = verify(Checkpoint.at(root, told))
    assert {(each.kind, each.file, each.severity) for each in found.damages} == expected
    assert found.sound is not bool(expected)
    if expected:
        assert found.recoverable is None
        before = bytes_of(root)
        with pytest.raises(Refused):
            rewind(root, lambda _: 2, Checks(lambda *_: (), lambda *_: None, told), NOW)
        with pytest.raises(Refused):
            fork_at_batch(Checkpoint.at(root, told), tmp_path / "fork", 2, Checks(lambda *_: (), lambda *_: None, told))
        assert bytes_of(root) == before
        assert [each.name for each in tmp_path.iterdir()] == ["checkpoint"]


def test_a_sum_over_everything_has_one_partition_whatever_is_written_down(tmp_path: Path) -> None:
    root = with_state(tmp_path / "checkpoint", operators=1, partitions=1, keys=())
    assert verify(Checkpoint.at(root)).sound
    shutil.rmtree(root / "state/0/_metadata")
    assert verify(Checkpoint.at(root)).sound


@pytest.mark.parametrize(
    ("file", "content", "what"),
    [
        ("offsets/4", "v3\n{}\n{}", "offsets v3 is newer than v1, v2, which this version reads"),
        ("commits/4", "v4\n{}", "commits v4 is newer than v1, v2, v3, which this version reads"),
        (
            "state/0/0/_metadata/schema",
            schema("shop", version="v3"),
            "the schema of the state, v3, is newer than v1, v2, which this version reads",
        ),
        (
            "state/0/_metadata/metadata",
            metadata(0, version="v3"),
            "the metadata of the operator, v3, is newer than v1, v2, which this version reads",
        ),
        (
            "state/0/_metadata/v3/0",
            "v3\n{}",
            "the metadata of the operator, v3, is newer than v1, v2, which this version reads",
        ),
    ],
)
def test_what_a_newer_spark_wrote_is_named_and_nothing_goes_on_by_it(
    tmp_path: Path, file: str, content: str | bytes, what: str
) -> None:
    root = with_state(tmp_path / "checkpoint", operators=1)
    write(root / file, content)
    found = verify(Checkpoint.at(root))
    assert [each.severity for each in found.damages] == [U]
    assert what in found.damages[0].what
    with pytest.raises(Refused, match=what.replace("(", ".")):
        rewind(root, partial(find_batch, point=Point(batch=4)), Checks(lambda *_: (), lambda *_: None), NOW)
