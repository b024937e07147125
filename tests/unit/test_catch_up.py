"""The query of a full replay on disk, without Spark: what was planned is cut to the goal, for each of its sources."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NoReturn

import pytest

from backcast.errors import Drifted
from backcast.streams.catch_up import CatchUp, _Goal


def _no_rows(_: object) -> NoReturn:
    raise AssertionError("nothing is computed here")


@pytest.fixture
def query(tmp_path: Path) -> CatchUp:
    made = CatchUp(tmp_path, "orders", _no_rows, "code", partitions=lambda: [0])
    for name in ("offsets", "commits", "sources/0"):
        (made.checkpoint / name).mkdir(parents=True)
    (made.checkpoint / "sources" / "0" / "0").write_bytes(b'\0v1\n{"orders":{"0":0}}')
    return made


def _plan(query: CatchUp, batch: int, *ends: int) -> None:
    """As a query plans a batch whose transform reads the topic so many times."""
    lines = ["v1", "{}", *(json.dumps({"orders": {"0": end}}) for end in ends)]
    (query.checkpoint / "offsets" / str(batch)).write_text("\n".join(lines))


def _planned(query: CatchUp, batch: int) -> list[int]:
    lines = (query.checkpoint / "offsets" / str(batch)).read_text().split("\n")[2:]
    return [json.loads(line)["orders"]["0"] for line in lines]


@pytest.mark.parametrize(
    ("ends", "goal", "as_one", "cut"),
    [
        ((8,), 5, False, [5]),
        ((8, 8), 5, False, [5, 5]),
        ((8, 8), 9, False, [8, 8]),
        ((8, 6), 9, False, [6, 6]),
        ((8, 6), 5, False, [5, 5]),
        ((8, 6), 7, True, [7, 7]),
        ((7, 7), 7, True, [7, 7]),
    ],
)
def test_all_sources_of_a_batch_are_cut_to_one_offset(
    query: CatchUp, ends: tuple[int, ...], goal: int, as_one: bool, cut: list[int]
) -> None:
    """The same topic twice, in a join with itself: one side must not be ahead of the other where a slice ends."""
    _plan(query, 0, *ends)
    query._cut(_Goal({0: goal}, as_one))
    assert _planned(query, 0) == cut


def test_a_folder_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(Drifted, match="no longer has what the replay has computed"):
        CatchUp(tmp_path / "gone", "orders", _no_rows, "code", partitions=lambda: [0]).refuse_other_code()
