"""Connectors are found in the cache without Ivy, and a damaged cache is never trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.errors import Unavailable
from backcast.spark import packages
from backcast.spark.versions import BROKER, EMBEDDED_LAKE, Package


@pytest.fixture
def resolutions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An empty cache, and a repository where every package is one small file and a common one; what was asked of it."""
    repository = tmp_path / "repository"
    repository.mkdir()
    asked: list[str] = []

    def resolve(coordinate: str) -> list[Path]:
        asked.append(coordinate)
        jars = [repository / f"{coordinate.replace(':', '_')}.jar", repository / "org_common-1.0.jar"]
        for jar in jars:
            jar.write_bytes(b"jar")
        return jars

    monkeypatch.setenv("BACKCAST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packages, "_resolve", resolve)
    return asked


def test_a_second_look_asks_no_repository(resolutions: list[str]) -> None:
    assert not packages.are_cached()
    first = packages.local_jars()
    assert packages.are_cached()
    assert packages.local_jars() == first
    assert [jar.read_bytes() for jar in first] == [b"jar"] * 3
    assert resolutions == [package.value for package in EMBEDDED_LAKE]


def test_any_set_of_packages_is_there_once_each_of_them_was(resolutions: list[str]) -> None:
    packages.local_jars(tuple(Package))
    asked = len(resolutions)
    for some in ((Package.ICEBERG, Package.KAFKA, Package.SQLITE), (Package.DELTA,), tuple(Package)):
        assert packages.are_cached(some)
        names = [jar.name for jar in packages.local_jars(some)]
        assert len(names) == len(set(names)) == len(some) + 1
    assert len(resolutions) == asked == len(Package)


@pytest.mark.parametrize("damage", ["truncated", "missing", "no listing"])
def test_a_damaged_entry_is_resolved_again(resolutions: list[str], damage: str) -> None:
    first = packages.local_jars()
    match damage:
        case "truncated":
            first[0].write_bytes(b"")
        case "missing":
            first[0].unlink()
        case _:
            (first[0].parent / "jars.json").unlink()
    assert not packages.are_cached()
    assert packages.local_jars() == first
    assert first[0].read_bytes() == b"jar"
    assert resolutions == [*(package.value for package in EMBEDDED_LAKE), EMBEDDED_LAKE[0].value]


def test_a_cache_that_cannot_be_written_is_a_clear_error(resolutions: list[str], tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "jars").write_text("a file where a folder should be")
    with pytest.raises(Unavailable, match="cannot be written"):
        packages.local_jars()
    assert resolutions == [EMBEDDED_LAKE[0].value]


def test_a_session_never_gets_what_spark_brings_itself_and_a_broker_gets_all(
    resolutions: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark").mkdir()
    for name in ("common-2.0.jar", "scala-library-2.13.16.jar"):
        (tmp_path / "spark" / name).touch()
    monkeypatch.setattr(packages, "_brought", lambda: tmp_path / "spark")
    assert [jar.name for jar in packages.local_jars([Package.AVRO])] == [f"{Package.AVRO.value.replace(':', '_')}.jar"]
    broker = [jar.name for jar in packages.broker_jars()]
    assert broker == ["scala-library-2.13.16.jar", f"{BROKER.replace(':', '_')}.jar", "org_common-1.0.jar"]


def test_no_library_is_in_two_versions_on_the_class_path() -> None:
    """Packages are resolved one by one, so nobody else sees to it."""
    names = [packages._artifact(jar.name) for jar in packages.local_jars(tuple(Package))]
    assert len(names) == len(set(names))
