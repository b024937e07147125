"""What a stream has still to write when a run restates its table: from when on, and what a plan says about it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from backcast.errors import ChunkFailed
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.finding import Finding, Severity
from backcast.model.late import Closing, Holding, OpenWindows
from backcast.model.live import stream_lease
from backcast.model.scope import EVERYTHING, Scope
from backcast.model.table import PartitionField
from backcast.model.time import Interval
from backcast.plan.open_findings import open_findings
from backcast.plan.windows import Partitioning, partitioning
from backcast.project.config import load_project
from backcast.project.open_windows import open_windows
from backcast.store.open import open_store
from backcast.testing.samples import sample_holder
from backcast.testing.store_stream_contract import sample_batch, sample_stream
from tests.unit.checkpoints import new_checkpoint, offsets, write
from tests.unit.test_config_streams import _GOOD, _STREAM

_HOUR = 3_600_000_000
_HOURLY = Closing(every=_HOUR, length=_HOUR)
_DAILY = Closing(every=24 * _HOUR, length=24 * _HOUR)
_ZERO = datetime(2026, 1, 1, tzinfo=UTC)


def at(hour: float) -> datetime:
    return _ZERO + timedelta(hours=hour)


@pytest.mark.parametrize(
    ("held", "watermark", "written"),
    [
        (Holding((_HOURLY,)), 8.33, 8),
        (Holding((_HOURLY,)), 8.99, 8),
        (Holding((_HOURLY,)), 9, 9),
        (Holding((Closing(every=_HOUR // 4, length=_HOUR),)), 8.33, 7.5),
        (Holding((Closing(every=_HOUR // 4, length=_HOUR),)), 8.5, 7.75),
        (Holding((Closing(every=_HOUR, length=_HOUR, origin=_HOUR // 2),)), 8.33, 7.5),
        (Holding((_DAILY,)), 23.9, 0),
        (Holding((_DAILY,)), 24, 24),
        (Holding((_HOURLY, _DAILY)), 30, 24),
        (Holding(), 8.25, 8.25),
        (Holding(unknown=True), 8.25, 6.25),
        (Holding((_HOURLY,), unknown=True), 8.25, 6.25),
        (Holding((_DAILY,), unknown=True), 8.25, 0),
    ],
)
def test_a_window_is_open_until_the_watermark_has_reached_its_end(
    held: Holding, watermark: float, written: float
) -> None:
    assert held.written_until(at(watermark), timedelta(hours=2)) == at(written)


def found(
    stream: OpenWindows, *windows: tuple[float, float], unit: str = "", zone: str = "UTC", exact: bool = False
) -> list[Finding]:
    column = TimeColumn(column="start", kind=TimeKind.TIMESTAMP, zone=zone)
    scope = Scope(
        windows=tuple(Interval(start=at(a), end=at(b)) for a, b in windows), predicate=EVERYTHING, exact=exact
    )
    return open_findings([stream], scope, cut_by(column, unit))


def cut_by(column: TimeColumn, unit: str) -> Partitioning:
    return partitioning(column, (PartitionField(source="start", transform=unit, name="part"),) if unit else ())


LIVE = OpenWindows("live", since=at(8), watermark=at(8.5))


def test_a_window_that_the_stream_still_writes_to_is_refused_and_one_before_it_is_not() -> None:
    assert found(LIVE, (4, 8)) == []
    assert found(LIVE, (1, 2), (4, 8), unit="hour") == []
    (told,) = found(LIVE, (4, 9), unit="hour")
    assert (told.code, told.severity) == ("stream.still-open", Severity.BLOCK)
    assert told.reason == (
        "stream live has still to write rows from 2026-01-01 08:00 UTC on (its watermark is 2026-01-01 08:30:00 UTC):"
        " it will write them, and those of both would be in the table twice"
    )
    assert told.remedy.startswith("end the window at 2026-01-01T08:00Z, or plan again when its watermark has passed")
    assert "(backcast stream status live); if it never runs again, take stream live out" in told.remedy


@pytest.mark.parametrize(
    ("more", "remedy"),
    [
        ({"unit": "day"}, "end the window at 2026-01-02, or plan again"),
        ({"unit": "day", "exact": True}, "end the window at 2026-01-02T08:00Z, or plan again"),
        ({"unit": "month"}, "plan again"),
        ({"zone": "Asia/Kolkata"}, "end the window at 2026-01-02T08:00Z, or plan again"),
    ],
)
def test_the_end_that_is_offered_is_one_that_would_not_be_widened_again(more: dict[str, Any], remedy: str) -> None:
    live = OpenWindows("live", since=at(32), watermark=at(32.5))
    (told,) = found(live, (4, 33), **more)
    assert told.remedy.startswith(remedy)


def test_where_nothing_is_written_yet_or_no_window_is_asked_for_everything_is_open() -> None:
    (told,) = found(OpenWindows("live", since=None, watermark=None), (4, 8))
    assert told.reason.startswith("stream live has no watermark yet, and has still to write what it has read")
    assert told.remedy.startswith("plan again when")
    (told,) = found(LIVE)
    assert told.severity is Severity.BLOCK, "rows of an append by offsets may be of any time"
    (told,) = found(OpenWindows("live", at(8), at(8.5), external=True), (9, 10))
    assert told.remedy.startswith("plan again when its watermark has passed the end of the window (backcast stream lag")


def test_a_checkpoint_that_cannot_be_read_is_a_warning() -> None:
    (told,) = found(OpenWindows("live", None, None, external=True, known=False), (4, 8))
    assert (told.code, told.severity) == ("stream.unreadable", Severity.WARN)


class Standing:
    """A stream, its checkpoint of five batches as Spark writes it, and its store."""

    def __init__(self, root: Path) -> None:
        (root / "backcast.yaml").write_text(_GOOD + _STREAM)
        self.root, self.spec = root, load_project(root, environ={}).stream("live")
        self.store = open_store(f"sqlite:///{root}/store.db")

    def checkpoint(self, *operators: str) -> None:
        """Its newest batch is planned only: what that closes is not written."""
        new_checkpoint(Path(self.spec.checkpoint), planned=1, watermark=True)
        for number, name in enumerate(operators):
            document = {"operatorInfo": {"operatorId": number, "operatorName": name}, "stateStoreInfo": []}
            folder = Path(self.spec.checkpoint, "state", str(number), "_metadata")
            write(folder / "metadata", f"v1\n{json.dumps(document)}")

    def found(self, held: Holding | None = None, **changed: Any) -> OpenWindows | None:
        return open_windows(replace(self.spec, **changed), self.store.streams, lambda: held)


@pytest.fixture
def standing(tmp_path: Path) -> Iterator[Standing]:
    made = Standing(tmp_path)
    with made.store:
        yield made


_MARK = datetime(2026, 1, 1, 0, 0, 40, tzinfo=UTC)
"""Of the newest committed batch of that checkpoint."""


@pytest.mark.parametrize("operators", [(), ("dedupe",), ("dedupeWithinWatermark", "globalLimit")])
def test_a_stream_without_state_or_with_one_that_waits_for_nothing_holds_nothing(
    standing: Standing, operators: tuple[str, ...]
) -> None:
    assert standing.found(Holding()) is None, "it has not begun"
    standing.checkpoint(*operators)
    assert standing.found(Holding((_HOURLY,))) is None


def test_the_state_that_is_there_counts_and_of_a_join_the_logic_says_which_it_is(standing: Standing) -> None:
    standing.checkpoint("stateStoreSave")
    assert standing.found(Holding((_DAILY,))) == OpenWindows("live", _ZERO, _MARK)
    assert standing.found(None) == OpenWindows("live", _ZERO, _MARK), "the transform was changed since"
    long = replace(standing.spec.pipeline, warm_up_before=timedelta(days=2))
    assert standing.found(Holding(unknown=True), pipeline=long) == OpenWindows("live", at(-48), _MARK)

    def broken() -> Holding:
        raise ChunkFailed("the transform raises")

    assert open_windows(standing.spec, standing.store.streams, broken) == OpenWindows("live", _ZERO, _MARK)
    write(Path(standing.spec.checkpoint, "offsets", "4"), offsets({"orders": {"0": 50, "1": 50}}))
    assert standing.found(Holding((_DAILY,))) == OpenWindows("live", None, None), "no record had a time"
    shutil.rmtree(standing.spec.checkpoint)
    standing.checkpoint("symmetricHashJoin")
    assert standing.found(None) is None
    assert standing.found(Holding(unknown=True)) is not None


def test_of_a_checkpoint_out_of_reach_the_store_tells_when_the_stream_is_run_here(standing: Standing) -> None:
    far, held = "s3://bucket/live", Holding((_DAILY,))
    assert standing.found(held, checkpoint=far) is None, "it was never started"
    unknown = OpenWindows("live", None, None, external=True, known=False)
    assert standing.found(held, checkpoint=far, external=True) == unknown
    assert standing.found(None, checkpoint=far, external=True) is None
    lease = standing.store.leases.acquire(stream_lease("live"), sample_holder(), 300)
    standing.store.streams.save(sample_stream(), lease)
    assert standing.found(held, checkpoint=far) is None
    standing.store.streams.record(sample_batch(0, landed=True, watermark=_MARK), lease)
    standing.store.streams.record(sample_batch(1, watermark=_MARK + timedelta(days=2)), lease)
    assert standing.found(held, checkpoint=far) == OpenWindows("live", _ZERO, _MARK)
