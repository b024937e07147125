"""Deletion vectors of files that a stage takes over from its table."""

from __future__ import annotations

from typing import Any

import pytest

from backcast.spark.delta.paths import TableRoot
from backcast.spark.delta.vectors import absolute, relative

ROOT = TableRoot("s3a://lake/a%20b/t")


def add(kind: str, place: str) -> dict[str, Any]:
    return {"path": "p.parquet", "deletionVector": {"storageType": kind, "pathOrInlineDv": place, "offset": 4}}


@pytest.mark.parametrize("folder", ["", "ab"])
def test_a_vector_is_named_from_anywhere_and_again_as_before(folder: str) -> None:
    """With the example of the log's protocol."""
    mine = add("u", f"{folder}^-aqEH.-t@S}}K{{vb[*k^")
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    place = f"s3a://lake/a%20b/t/{folder}/{name}" if folder else f"s3a://lake/a%20b/t/{name}"
    assert absolute(ROOT, mine) == add("p", place)
    assert relative(ROOT, add("p", place)) == mine


def test_vectors_of_others_inline_ones_and_none_stay_as_they_are() -> None:
    for each in (add("p", "s3a://lake/other/deletion_vector_x.bin"), add("i", "wi5b=000010000siXQKl0rr91000f55c8Xg0")):
        assert absolute(ROOT, each) == relative(ROOT, each) == each
    assert absolute(ROOT, {"path": "p"}) == relative(ROOT, {"path": "p"}) == {"path": "p"}
