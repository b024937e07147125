"""Damage to real state, case by case: what `verify` calls it, and what Spark makes of it at a restart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from backcast.model.checkpoint import Severity
from backcast.streams.checkpoint.content import check_zip, checksum_beside
from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.folder import Checkpoint
from tests.spark.checkpoint_kit import TOPIC, Lab, as_after_a_kill, files_below, restarts

Spoil = Callable[[Path, int], object]
"""Damages a checkpoint whose restart needs this version of its state."""
_FIRST_SUM = 8
FAILS, SILENT, HARMLESS = Severity.FAILS, Severity.SILENT, Severity.HARMLESS


def gone(name: str, *, checksum: bool = True) -> Spoil:
    def spoil(root: Path, version: int) -> None:
        file = named(root, name, version)
        file.unlink()
        if checksum:
            checksum_beside(file).unlink(missing_ok=True)

    return spoil


def cut(name: str, by: int, *, checksum: bool = True) -> Spoil:
    def spoil(root: Path, version: int) -> None:
        file = named(root, name, version)
        file.write_bytes(file.read_bytes()[:-by])
        if not checksum:
            checksum_beside(file).unlink()

    return spoil


def changed(name: str, *, checksum: bool = True, at: float = 0.5) -> Spoil:
    def spoil(root: Path, version: int) -> None:
        file = named(root, name, version)
        data = bytearray(file.read_bytes())
        data[int(at * len(data))] ^= 0x55
        file.write_bytes(data)
        if not checksum:
            checksum_beside(file).unlink()

    return spoil


def stale(name: str) -> Spoil:
    def spoil(root: Path, version: int) -> None:
        sums = checksum_beside(named(root, name, version))
        data = bytearray(sums.read_bytes())
        data[_FIRST_SUM] ^= 1
        sums.write_bytes(data)

    return spoil


def without(*folders: str) -> Spoil:
    return lambda root, _: [shutil.rmtree(root / each) for each in folders]


def alone(spoil: Spoil) -> Spoil:
    """With no version in its way that stands alone."""

    def spoiled(root: Path, version: int) -> None:
        for file in (*files_below(root, "state/0/*/*.snapshot"), *files_below(root, f"state/0/*/{version}.zip")):
            file.unlink()
        spoil(root, version)

    return spoiled


def named(root: Path, name: str, version: int) -> Path:
    """`V` in the name is the version; else the newest of these files that the version needs."""
    home = root / "state/0/0"
    if name == "sst":
        return home / "SSTs" / check_zip(home / f"{version}.zip")[0][0]
    found = [each for each in home.glob(name.replace("V", str(version))) if int(each.stem) <= version]
    return max(found, key=lambda each: int(each.stem))


CASES: dict[str, dict[str, tuple[Spoil, set[tuple[str, Severity]], str]]] = {
    "hdfs": {
        "nothing": (lambda *_: None, set(), "right"),
        "a delta is missing": (alone(gone("V.delta")), {("state-missing", FAILS)}, "fails"),
        "a delta is cut at its end": (alone(cut("V.delta", 7)), {("state-cut", SILENT)}, "right"),
        "a delta is cut deep": (alone(cut("V.delta", 40)), {("state-cut", SILENT)}, "fails"),
        "a delta is changed": (alone(changed("V.delta")), {("state-garbled", FAILS)}, "fails"),
        "a snapshot is garbled": (changed("*.snapshot", at=0.1), {("state-garbled", FAILS)}, "fails"),
        "a partition is missing": (without("state/0/1"), {("state-missing", FAILS)}, "fails"),
        "a partition and the metadata": (
            without("state/0/1", "state/0/_metadata"),
            {("state-missing", FAILS)},
            "fails",
        ),
        "all state is missing": (without("state"), {("state-missing", FAILS)}, "fails"),
    },
    "changelog": {
        "nothing": (lambda *_: None, set(), "right"),
        "a changelog is missing": (alone(gone("V.changelog")), {("state-missing", FAILS)}, "fails"),
        "a changelog is cut at its end": (alone(cut("V.changelog", 7)), {("state-cut", SILENT)}, "right"),
        "a changelog is changed": (alone(changed("V.changelog")), {("state-garbled", FAILS)}, "fails"),
        "all state is missing": (without("state"), {("state-missing", FAILS)}, "fails"),
    },
    "rocksdb": {
        "nothing": (lambda *_: None, set(), "right"),
        "an archive is missing": (gone("V.zip"), {("state-missing", FAILS)}, "fails"),
        "an archive is changed": (changed("V.zip"), {("state-garbled", FAILS)}, "fails"),
        "the checksum of an archive is stale": (stale("V.zip"), {("state-stale-checksum", FAILS)}, "fails"),
        "an SST file is missing": (gone("sst"), {("state-sst-missing", FAILS)}, "fails"),
        "an SST file is cut": (cut("sst", 20), {("state-cut", FAILS)}, "fails"),
        "an SST file is changed": (changed("sst"), {("state-garbled", FAILS)}, "fails"),
        "an SST file is changed, and its checksum gone": (changed("sst", checksum=False), set(), "fails"),
        "all state is missing": (without("state"), {("state-missing", FAILS)}, "fails"),
    },
}


@pytest.mark.parametrize(("store", "case"), [(store, case) for store, cases in CASES.items() for case in cases])
def test_what_verify_says_of_damage_is_what_a_restart_meets(lab: Lab, tmp_path: Path, store: str, case: str) -> None:
    spoil, expected, outcome = CASES[store][case]
    made = lab.copy(store, tmp_path / "checkpoint")
    last = as_after_a_kill(made)
    spoil(made.path, last)
    found = verify(Checkpoint.at(made.path))
    assert {(each.kind, each.severity) for each in found.damages} == expected
    assert restarts(lab, store, made, last) == outcome


def test_state_of_another_past_is_found_and_a_restart_at_its_snapshots_miscounts(lab: Lab, tmp_path: Path) -> None:
    """A rewind by hand, that leaves newer state behind, on the store whose newer snapshots Spark then loads."""
    made = lab.copy("hdfs", tmp_path / "checkpoint")
    expected, to = made.rows(), 2
    snapshots = {int(each.stem) for each in made.path.glob("state/0/*/*.snapshot")}
    for name in ("offsets", "commits"):
        for file in files_below(made.path, f"{name}/[0-9]*", lambda each: int(each.name) > to):
            file.unlink()
            checksum_beside(file).unlink()
    found = verify(Checkpoint.at(made.path))
    assert {(each.kind, each.severity) for each in found.damages} == {("state-ahead", SILENT)}
    made.given = {batch: rows for batch, rows in made.given.items() if batch <= to}
    for stop_at in (*sorted(each for each in snapshots if to + 1 < each < 7), None):
        lab.run("hdfs", made, per_batch=30, stop_at=stop_at)
    assert made.rows() != expected


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        ({"0": 70, "1": 40}, "twice"),
        ({"0": 70}, "twice"),
        (None, "fails"),
    ],
)
def test_offsets_that_contradict_those_before_are_found_and_read_records_again(
    lab: Lab, tmp_path: Path, ends: dict[str, int] | None, outcome: str
) -> None:
    made = lab.copy("stateless", tmp_path / "checkpoint")
    before = made.rows()
    last = Checkpoint.at(made.path).committed
    file = made.path / f"offsets/{last}"
    version, header, _ = file.read_text().split("\n")
    document = {"elsewhere": {"0": 1}} if ends is None else {TOPIC: ends}
    file.write_text("\n".join([version, header, json.dumps(document)]))
    checksum_beside(file).unlink()
    found = verify(Checkpoint.at(made.path))
    assert {(each.kind, each.severity) for each in found.damages} == {("offsets-out-of-step", SILENT)}
    try:
        lab.run("stateless", made)
    except PySparkException:
        assert outcome == "fails"
    else:
        assert outcome == "twice"
        assert len(made.rows()) > len(set(made.rows())) == len(before)
