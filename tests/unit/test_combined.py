"""What several records decide together is refused where offsets would cut them, and only there."""

from __future__ import annotations

import pytest

from backcast.model.analysis import Combines
from backcast.model.log import Isolation, LeftToStream, LogPin, OffsetRange
from backcast.model.request import Kind, Request
from backcast.model.table import PublishMode
from backcast.plan.combined import combined_findings
from backcast.testing.samples import sample_manifest

BY_OFFSETS = Request(pipeline="orders", offsets="0=0..5")
A_WINDOW = Request(pipeline="orders", start="2026-01-01", end="2026-01-02")
BOOTSTRAP = Request(pipeline="orders", kind=Kind.BOOTSTRAP, offsets="earliest")
APPEND, MERGE, REPLACE = PublishMode.APPEND, PublishMode.MERGE, PublishMode.REPLACE
WINDOWS, UNIQUE = (Combines.GROUPS,), (Combines.DUPLICATES,)
LEFT = LeftToStream(stream="live", ranges=(OffsetRange(partition=0, start=9, end=12),))


@pytest.mark.parametrize(
    ("request_", "mode", "combines", "chunks", "left", "code"),
    [
        (BOOTSTRAP, APPEND, (), 3, None, None),
        (BOOTSTRAP, APPEND, WINDOWS, 1, None, "bootstrap.keeps-state"),
        (BOOTSTRAP, APPEND, UNIQUE, 1, None, "bootstrap.keeps-state"),
        (BOOTSTRAP, MERGE, WINDOWS, 1, None, "bootstrap.keeps-state"),
        (BOOTSTRAP, MERGE, UNIQUE, 1, None, None),
        (BY_OFFSETS, APPEND, (), 3, None, None),
        (BY_OFFSETS, APPEND, UNIQUE, 1, None, "append.keeps-state"),
        (BY_OFFSETS, MERGE, WINDOWS, 1, None, None),
        (A_WINDOW, APPEND, WINDOWS, 1, None, None),
        (A_WINDOW, APPEND, WINDOWS, 2, None, "append.keeps-state"),
        (A_WINDOW, APPEND, WINDOWS, 1, LEFT, "append.keeps-state"),
        (A_WINDOW.model_copy(update={"retries": "r"}), APPEND, WINDOWS, 1, None, "append.keeps-state"),
        (A_WINDOW, REPLACE, WINDOWS, 9, LEFT, None),
    ],
)
def test_groups_are_not_cut_by_offsets(
    request_: Request,
    mode: PublishMode,
    combines: tuple[Combines, ...],
    chunks: int,
    left: LeftToStream | None,
    code: str | None,
) -> None:
    log = LogPin(
        topic="orders",
        topic_id="t",
        isolation=Isolation.COMMITTED,
        cleanup=("delete",),
        retention_ms=None,
        retention_bytes=None,
        timestamp_type="CreateTime",
        partitions=(),
        slices={},
        left=left,
    )
    pin = sample_manifest().inputs[0].model_copy(update={"log": log})
    found = combined_findings(request_, mode, combines, [pin], chunks)
    assert [each.code for each in found] == ([code] if code else [])
