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
from tests.spark.checkpoint_kit import FAILURES, TOPIC, Lab, Made, as_after_a_kill, files_below, restarts

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


def restarted(lab: Lab, made: Made) -> tuple[dict[int, int], str]:
    """How many rows come out in each batch, and what the query fails with."""
    made.given.clear()
    said = ""
    try:
        lab.run("stateless", made)
    except FAILURES as error:
        said = str(error)
    return {batch: len(rows) for batch, rows in made.given.items()}, said


def lost(*files: str) -> Callable[[Path], object]:
    """With the checksums beside them."""

    def spoil(root: Path) -> None:
        for file in (each for name in files for each in files_below(root, name)):
            file.unlink()
            checksum_beside(file).unlink(missing_ok=True)

    return spoil


def says(file: str, content: str) -> Callable[[Path], object]:
    """As somebody wrote it by hand, and no checksum tells."""

    def spoil(root: Path) -> None:
        lost(file)(root)
        (root / file).write_text(content)

    return spoil


def edited(root: Path) -> None:
    """Of the last batch, after a kill; the checksum beside it stays."""
    lost("commits/7")(root)
    file = root / "offsets/7"
    file.write_text(file.read_text().replace("80", "75"))


def one_source_more(root: Path) -> None:
    says("offsets/7", f"{(root / 'offsets/7').read_text()}\n-")(root)


AT_START, AGAIN = "the query fails at its start", "is run into the sink again, then the query fails: CONCURRENT_STREAM_"
TWICE = "CONCURRENT_STREAM_LOG_UPDATE"
LOGS: dict[str, tuple[Callable[[Path], object], tuple[str, Severity], str, dict[int, int], str]] = {
    "the last offsets": (lost("offsets/7"), ("commit-ahead", SILENT), f"batch 6 {AGAIN}", {6: 20}, TWICE),
    "all offsets": (lost("offsets/[0-9]*"), ("offsets-missing", SILENT), f"batch 0 {AGAIN}", {0: 20}, TWICE),
    "offsets before": (lost("offsets/6"), ("offsets-missing", FAILS), "`batch 6 doesn't", {}, "batch 6 doesn't exist"),
    "old offsets": (lost("offsets/3"), ("offsets-gap", HARMLESS), "nothing reads it", {}, ""),
    "edited offsets": (edited, ("changed", SILENT), "goes by what stands there", {7: 10, 8: 10}, ""),
    "two commits": (lost("commits/[67]"), ("commits-behind", SILENT), "runs batch 7 alone", {7: 20}, ""),
    "empty": (says("offsets/7", ""), ("log-empty", FAILS), "`Incomplete log file`", {}, "Incomplete log file"),
    "version": (says("offsets/7", "x1\n{}\n{}"), ("log-version", FAILS), "MALFORMED_LOG", {}, "MALFORMED_LOG_FILE"),
    "JSON": (says("offsets/7", "v1\n{nope\n{}"), ("log-json", FAILS), "JSON parser", {}, "Unexpected character"),
    "no sources": (says("offsets/7", "v1\n{}"), ("log-shape", FAILS), AT_START, {}, "There are [0] sources"),
    "one source more": (one_source_more, ("sources", FAILS), "with an assertion", {}, "assertion failed: There"),
    "metadata": (says("metadata", '{"id":'), ("metadata-json", FAILS), "JSON parser", {}, "JsonEOFException"),
    "a start": (says("sources/0/0", "x"), ("source-start", FAILS), AT_START, {}, "requirement failed"),
}
"""Of a query that committed batches 0 to 7, twenty records each: in words of `verify` what a restart does; the batches
that it runs, and what Spark says when it fails.
"""


@pytest.mark.parametrize("case", LOGS)
def test_what_verify_says_of_damaged_logs_is_what_a_restart_does(lab: Lab, tmp_path: Path, case: str) -> None:
    spoil, expected, told, again, failure = LOGS[case]
    made = lab.copy("stateless", tmp_path / "checkpoint")
    spoil(made.path)
    (found,) = verify(Checkpoint.at(made.path)).damages
    assert (found.kind, found.severity) == expected
    assert told in found.at_restart
    ran, said = restarted(lab, made)
    assert ran == again
    assert failure in said
    assert bool(failure) is bool(said)
    if found.kind == "source-start":
        assert found.remedy == "remove it and the checksum beside it"
        lost("sources/0/0")(made.path)
        assert restarted(lab, made) == ({}, "")


def test_a_query_without_its_metadata_goes_on_under_another_id(lab: Lab, tmp_path: Path) -> None:
    made = lab.copy("stateless", tmp_path / "checkpoint")
    known = Checkpoint.at(made.path).query_id()
    lost("metadata")(made.path)
    (found,) = verify(Checkpoint.at(made.path)).damages
    assert (found.kind, found.severity) == ("metadata-missing", SILENT)
    lab.run("stateless", made)
    assert Checkpoint.at(made.path).query_id() not in (None, known)


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
