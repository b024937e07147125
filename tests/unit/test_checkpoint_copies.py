"""Backups, restores, rewinds and forks of checkpoints, killed at every rename, and beside a stream that writes."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backcast.errors import InvalidRequest, NotVerified, Refused
from backcast.model.checkpoint import Change, SinkOutcome, SinkPrediction
from backcast.model.pipeline import TableFormat
from backcast.streams.checkpoint.backup import COPY, backup, verify_backup
from backcast.streams.checkpoint.change import Checks, Skipped, nothing_skipped
from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.difference import difference
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.fork import fork_at_batch, fork_at_offsets
from backcast.streams.checkpoint.history import history
from backcast.streams.checkpoint.look import inspect
from backcast.streams.checkpoint.point import Point, find_batch
from backcast.streams.checkpoint.restore import restore
from backcast.streams.checkpoint.rewind import rewind
from backcast.streams.checkpoint.sink import SinkMemory, predict, refuse_skip
from backcast.testing.faults import SimulatedCrash
from tests.unit.checkpoints import DAY, QUERY, commit, new_checkpoint, offsets, write

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CHECKS = Checks(lambda *_: (), lambda *_: None)


def bytes_of(root: Path) -> dict[str, bytes]:
    return {str(each.relative_to(root)): each.read_bytes() for each in sorted(root.rglob("*")) if each.is_file()}


def test_a_backup_has_every_byte_and_a_changed_one_is_found(tmp_path: Path) -> None:
    root = new_checkpoint(tmp_path / "checkpoint", planned=1)
    (root / "offsets/.6.1f0c.tmp").write_text("half")
    made = backup(root, None, NOW)
    copy = Path(made.path, COPY)
    assert (made.batch, made.planned, made.running) == (4, 5, False)
    assert bytes_of(copy) == {name: data for name, data in bytes_of(root).items() if ".tmp" not in name}
    verify_backup(Path(made.path))
    for spoil in (
        lambda: (copy / "offsets/2").write_text("v1"),
        lambda: (copy / "offsets/9").write_text("v1"),
        (copy / "commits/0").unlink,
    ):
        before = bytes_of(Path(made.path))
        spoil()
        with pytest.raises(NotVerified):
            restore(root, Path(made.path), CHECKS, NOW)
        for name in set(bytes_of(Path(made.path))) - set(before):
            (Path(made.path) / name).unlink()
        for name, data in before.items():
            (Path(made.path) / name).write_bytes(data)


def test_a_backup_beside_a_stream_that_writes_is_whole(tmp_path: Path) -> None:
    """Batches are planned and committed, and old ones removed, as fast as files can be written."""
    root = new_checkpoint(tmp_path / "checkpoint", batches=30)
    stop = threading.Event()

    def stream() -> None:
        number = 30
        while not stop.is_set():
            end = 10 * (number + 1)
            write(root / f"offsets/.{number}.tmp", offsets({"orders": {"0": end, "1": end}}))
            (root / f"offsets/.{number}.tmp").rename(root / f"offsets/{number}")
            (root / f"commits/.{number}.tmp").write_text(commit())
            (root / f"commits/.{number}.tmp").rename(root / f"commits/{number}")
            for name in ("offsets", "commits"):
                (root / name / str(number - 30)).unlink(missing_ok=True)
            number += 1
            stop.wait(0.002)

    writer = threading.Thread(target=stream)
    writer.start()
    try:
        made = [backup(root, tmp_path / f"backup-{number}", NOW) for number in range(5)]
    finally:
        stop.set()
        writer.join()
    assert any(each.running for each in made)
    for each in made:
        verify_backup(Path(each.path))
        assert verify(Checkpoint.at(Path(each.path, COPY))).sound
    assert not list(tmp_path.glob(".making*"))


def restored(root: Path, made: Path) -> Change:
    return restore(root, made, CHECKS, NOW)


def rewound(root: Path, _made: Path) -> Change:
    return rewind(root, lambda _: 2, CHECKS, NOW)


@pytest.mark.parametrize("command", [restored, rewound])
def test_killed_at_any_rename_the_same_command_ends_it_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Callable[[Path, Path], Change]
) -> None:
    real, calls = os.rename, 0
    expected: dict[str, bytes] = {}
    for kill_at in range(8):
        home = tmp_path / f"life-{kill_at}"
        root = new_checkpoint(home / "checkpoint")
        made = Path(backup(root, None, NOW).path)
        write(root / "commits/5", commit())
        before = bytes_of(root)
        calls = 0

        def dying(*given: object, at: int = kill_at) -> None:
            nonlocal calls
            calls += 1
            if calls == at // 2 + 1 and at % 2 == 0:
                raise SimulatedCrash
            real(*given)  # type: ignore[arg-type]
            if calls == at // 2 + 1:
                raise SimulatedCrash

        with monkeypatch.context() as patched:
            patched.setattr(os, "rename", dying)
            try:
                command(root, made)
            except SimulatedCrash:
                pass
            else:
                assert kill_at >= 6
        again = command(root, made)
        assert again.path == str(root)
        expected = expected or bytes_of(root)
        assert bytes_of(root) == expected
        kept = list(home.glob("checkpoint.before-*"))
        assert [bytes_of(each) for each in kept] == [before]
        assert not [each for each in home.iterdir() if each.name.startswith(".")]
        assert not command(root, made).changed


def test_an_exchange_that_was_interrupted_is_told(tmp_path: Path) -> None:
    root = new_checkpoint(tmp_path / "checkpoint")
    root.rename(tmp_path / ".checkpoint.backcast-ready")
    with pytest.raises(InvalidRequest, match="an exchange was interrupted"):
        Checkpoint.at(root)


def test_a_batch_is_found_by_number_watermark_and_offset(tmp_path: Path) -> None:
    checkpoint = Checkpoint.at(new_checkpoint(tmp_path / "checkpoint", planned=1, watermark=True), told=0)
    day = datetime.fromtimestamp(DAY / 1000, UTC)

    def at(seconds: float, delay: float = 0) -> int:
        moment = day + timedelta(seconds=seconds)
        return find_batch(checkpoint, Point(before=moment, delay=timedelta(seconds=delay)))

    assert find_batch(checkpoint, Point(batch=3)) == 3
    assert (at(30), at(29.9), at(3600), at(40, delay=10)) == (2, 1, 4, 2)
    assert find_batch(checkpoint, Point(offsets={0: 35})) == 2
    assert find_batch(checkpoint, Point(offsets={0: 35, 1: 20})) == 1
    for point, message in (
        (Point(), "where is it to go back to"),
        (Point(batch=5), "no batch 5"),
        (Point(batch=1, offsets={0: 1}), "where is it to go back to"),
        (Point(offsets={7: 1}), "reads no partition 7"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            find_batch(checkpoint, point)
    for point, message in (
        (Point(offsets={0: 5}), "ends behind these offsets"),
        (Point(before=day), "later than that"),
    ):
        with pytest.raises(Refused, match=message):
            find_batch(checkpoint, point)
    write(checkpoint.root / "offsets/3", "v1")
    with pytest.raises(Refused, match="cannot go on after batch 3") as refused:
        find_batch(Checkpoint.at(checkpoint.root, told=0), Point(batch=3))
    assert refused.value.hint == "batch 2 is whole: --to-batch 2"


def test_a_fork_is_another_query_and_leaves_the_first_alone(tmp_path: Path) -> None:
    root = new_checkpoint(tmp_path / "checkpoint")
    before = bytes_of(root)
    forked = fork_at_batch(Checkpoint.at(root), tmp_path / "fork", 2, CHECKS)
    assert forked.query_id not in ("", QUERY)
    assert bytes_of(root) == before
    found = difference(Checkpoint.at(root), Checkpoint.at(tmp_path / "fork"))
    assert (found.same_query, found.parted_after) == (False, 2)
    assert found.positions == ("orders 0: 50 | 30", "orders 1: 50 | 30")
    assert [each.what for each in found.batches] == ["planned only on the left"] * 2
    with pytest.raises(InvalidRequest, match="exists already"):
        fork_at_batch(Checkpoint.at(root), tmp_path / "fork", 2, CHECKS)


def test_a_fork_behind_where_the_query_stands_names_what_neither_reads_and_is_refused(tmp_path: Path) -> None:
    """Before, the table was said to apply what comes, and nobody heard of the offsets in between."""
    source = Checkpoint.at(new_checkpoint(tmp_path / "checkpoint", planned=1))
    memory, asked = SinkMemory("lake.shop.daily", TableFormat.ICEBERG, False, 4), list[str]()

    def sink(_: str, next_batch: int, again: int, skipped: Skipped = nothing_skipped, /) -> SinkPrediction:
        asked.append(skipped(memory.last))
        return refuse_skip(predict(memory, next_batch, again, new_id=True, skipped=asked[-1]))

    def forked(to: str, *ends: int) -> Change:
        starts = {"0": json.dumps({"orders": {str(number): end for number, end in enumerate(ends)}})}
        return fork_at_offsets(source, tmp_path / to, starts, Checks(lambda *_: (), sink))

    with pytest.raises(Refused, match=r"offsets 0=50\.\.100 of orders would be read by neither query") as refused:
        forked("behind", 100, 50)
    assert "--unchecked-sink" in refused.value.hint
    assert not (tmp_path / "behind").exists()
    assert forked("there", 50, 50).notes == forked("before", 50, 10).notes
    memory = replace(memory, last=5)
    assert forked("landed", 60, 60).sink is not None, "batch 5 is not committed, and in the table"
    memory = replace(memory, last=9)
    assert forked("unknown", 100, 100).sink is not None, "where batch 9 ends nobody knows"
    memory = replace(memory, last=None, empty=True)
    told = forked("anew", 100, 100)
    assert told.notes[-1] == "offsets 0=50..100 of orders, 1=50..100 of orders are read by neither query"


def test_what_the_sink_does_follows_from_what_the_table_remembers() -> None:
    def told(last: int | None, next_batch: int, again: int = 2, *, new: bool = False, empty: bool = False) -> str:
        memory = SinkMemory("lake.shop.daily", TableFormat.ICEBERG, empty, last)
        return predict(memory, next_batch, again, new_id=new).outcome

    assert told(last=5, next_batch=4) == SinkOutcome.SKIP
    assert told(last=3, next_batch=4) == SinkOutcome.APPLY
    assert told(last=None, next_batch=4) == SinkOutcome.DUPLICATE
    assert told(last=None, next_batch=4, again=0) == SinkOutcome.APPLY
    assert told(last=5, next_batch=4, new=True) == SinkOutcome.DUPLICATE
    assert told(last=5, next_batch=6, again=0, new=True) == SinkOutcome.APPLY
    assert told(last=None, next_batch=4, empty=True) == SinkOutcome.APPLY
    own = SinkMemory("lake.shop.daily", TableFormat.ICEBERG, False, 5, stream="live")
    refused = predict(own, 4, 2, new_id=False)
    assert refused.outcome == SinkOutcome.REFUSE
    assert "batch 5 of stream live, which does not start at batch 4" in refused.reason
    with pytest.raises(Refused, match="does not start at batch 5 unless with the offsets that 5 has there") as told_so:
        refuse_skip(predict(own, 5, 1, new_id=False))
    assert "backcast stream recover live" in told_so.value.hint
    assert predict(own, 6, 0, new_id=False).outcome == SinkOutcome.APPLY
    memory = SinkMemory("lake.shop.daily", TableFormat.ICEBERG, False, 5, "77")
    with pytest.raises(Refused, match="batches 4 to 5 are in the table") as refused:
        refuse_skip(predict(memory, 4, 2, new_id=False))
    assert "snapshot 77" in refused.value.hint


def test_logs_in_the_form_of_newer_sparks_are_read_and_a_query_goes_back_by_them(tmp_path: Path) -> None:
    """Offsets v2 name their sources, in any order; commits v3 say more about the sink."""
    root = new_checkpoint(tmp_path / "checkpoint")
    shutil.rmtree(root / "sources")
    for number in range(5):
        end = 10 * (number + 1)
        header = {"batchWatermarkMs": 0, "batchTimestampMs": DAY, "conf": {}, "sourceMetadataInfo": {}}
        sources = [f'live:{{"orders":{{"0":{end}}}}}', "files:-", f'hist:{{"old:orders":{{"1":{end}}}}}']
        lines = ["v2", json.dumps(header), *(reversed(sources) if number % 2 else sources)]
        write(root / f"offsets/{number}", "\n".join(lines))
        write(
            root / f"commits/{number}", 'v3\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{},"sinkMetadataMap":{"0":{}}}'
        )
    checkpoint = Checkpoint.at(root)
    assert verify(checkpoint).sound
    found = inspect(checkpoint)
    assert found.formats == {"offsets": "v2", "commits": "v3"}
    assert {each.source: each.topics for each in found.sources} == {
        "live": {"orders": {0: 50}},
        "files": None,
        "hist": {"old:orders": {1: 50}},
    }
    assert find_batch(checkpoint, Point(offsets={0: 25, 1: 39})) == 1
    assert [each.records for each in history(checkpoint).batches][1:] == [None] * 4, "of files nobody knows the number"
    shutil.copytree(root, tmp_path / "other")
    told = (tmp_path / "other/offsets/3").read_text().split("\n")
    write(tmp_path / "other/offsets/3", "\n".join([*told[:2], *reversed(told[2:])]))
    assert not difference(checkpoint, Checkpoint.at(tmp_path / "other")).batches
    assert rewound(root, tmp_path).batch == 2
    again = Checkpoint.at(root)
    assert (again.planned, again.committed, verify(again).sound) == (2, 2, True)
