"""Connectors are found in the cache without Ivy, and a damaged cache is never trusted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from backcast.errors import Unavailable
from backcast.spark import packages
from backcast.spark.versions import Package


@pytest.fixture
def resolutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """An empty cache, and a repository of one small file; the list grows with every resolution."""
    jar = tmp_path / "repository" / "connector.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"jar")
    asked: list[int] = []

    def resolve(wanted: Sequence[Package]) -> list[Path]:
        asked.append(len(wanted))
        return [jar]

    monkeypatch.setenv("BACKCAST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "_resolve", resolve)
    return asked


def test_a_second_look_asks_no_repository(resolutions: list[int]) -> None:
    assert not packages.are_cached()
    first = packages.local_jars()
    assert packages.are_cached()
    assert packages.local_jars() == first
    assert [jar.read_bytes() for jar in first] == [b"jar"]
    assert resolutions == [2]


def test_other_packages_are_another_entry(resolutions: list[int]) -> None:
    packages.local_jars()
    packages.local_jars([Package.ICEBERG])
    assert resolutions == [2, 1]


@pytest.mark.parametrize("damage", ["truncated", "missing", "no listing"])
def test_a_damaged_entry_is_resolved_again(resolutions: list[int], damage: str) -> None:
    (jar,) = packages.local_jars()
    match damage:
        case "truncated":
            jar.write_bytes(b"")
        case "missing":
            jar.unlink()
        case _:
            (jar.parent / "jars.json").unlink()
    assert packages.local_jars() == (jar,)
    assert jar.read_bytes() == b"jar"
    assert resolutions == [2, 2]


def test_a_cache_that_cannot_be_written_is_a_clear_error(resolutions: list[int], tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "jars").write_text("a file where a folder should be")
    with pytest.raises(Unavailable, match="cannot be written"):
        packages.local_jars()
    assert resolutions == [2]
