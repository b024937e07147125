"""What is checked of every stage, tried from both sides: the technical layer, and the schema. Numbers alone decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from backcast.model.digest import Digest
from backcast.model.layer import Layer
from backcast.model.manifest import Manifest
from backcast.model.run import Chunk, StageRecord
from backcast.model.stage import stage_of
from backcast.model.states import ChunkState
from backcast.model.table import FileRef, Merged, NetChange, PublishMode, StageCommit, TableFacts
from backcast.model.verdict import Outcome, Verdict
from backcast.ports import Engine, Target
from backcast.testing.samples import sample_manifest
from backcast.validate.measure import RuleHelp
from backcast.validate.step import Validation, validate

RUN = "orders-20260301-abcdef"
FIRST, SECOND = "2025-01-01", "2025-01-02"
THREE, TWO, OTHER_TWO = Digest(rows=3, high="7", low="8"), Digest(rows=2, high="5"), Digest(rows=2, high="9")
BASE, STAGED = "1", "72"


def file(day: str, rows: int) -> FileRef:
    return FileRef(path=f"{day}-{rows}.parquet", partition=f"day={day}", rows=rows, size=10)


def record(token: int, name: str, digest: Digest) -> StageRecord:
    return StageRecord(run_id=RUN, token=token, version=f"7{token}", chunk_ids=(name,), digest=digest, seconds=1)


@dataclass(frozen=True)
class Stage:
    """Two chunks of three rows and two, and all that table, engine and store say of them. By default all of it fits."""

    mode: PublishMode = PublishMode.REPLACE
    exact: bool = False
    read_back: bool = True
    states: tuple[ChunkState, ...] = (ChunkState.STAGED, ChunkState.STAGED)
    on_record: tuple[int, ...] = (3, 2)
    """Rows of each chunk in the ledger."""
    observed: tuple[Digest, ...] = (THREE, TWO)
    """Of each chunk, while it was written."""
    holds: tuple[Digest, ...] = (THREE, TWO)
    """Of each chunk, as it is read."""
    all_added: Digest = THREE + TWO
    """Of all rows that were added, as they are read."""
    beside: tuple[Digest, ...] = (TWO, TWO)
    """Of rows beside an exact scope, in the files that go and in those that come."""
    added: tuple[FileRef, ...] = (file(FIRST, 3), file(SECOND, 2))
    outside: tuple[FileRef, ...] = ()
    merged: Merged = field(default_factory=lambda: Merged(inserted=4, replaced=1, stayed=2))
    moved: Mapping[str, Any] = field(default_factory=dict)
    """What is other about the table than when it was planned."""

    @property
    def manifest(self) -> Manifest:
        manifest = sample_manifest(days=2)
        settings = manifest.settings.model_copy(update={"publish_mode": self.mode})
        scope = manifest.scope.model_copy(update={"exact": self.exact})
        return manifest.model_copy(update={"settings": settings, "scope": scope})

    def chunks(self) -> list[Chunk]:
        each = zip((1, 2), (FIRST, SECOND), self.states, self.on_record, strict=True)
        return [
            Chunk(run_id=RUN, chunk_id=name, ordinal=at, state=state, token=at, output_rows=rows)
            for at, name, state, rows in each
        ]

    def net_change(self, *_: object) -> NetChange:
        return NetChange(BASE, STAGED, self.added, (file(FIRST, 9),), self.outside)

    def facts(self) -> TableFacts:
        identity = self.manifest.target.identity.model_copy(update=dict(self.moved))
        return TableFacts(identity, BASE, None, None, referenced=True, properties={})

    def history(self, _: object) -> list[StageCommit]:
        both = (Merged(inserted=1), replace(self.merged, inserted=self.merged.inserted - 1))
        return [StageCommit(f"7{at}", (name,), at, 1, merged=both[at - 1]) for at, name in ((1, FIRST), (2, SECOND))]

    def read(self, *_: object) -> str:
        return "scope"

    def read_files(self, version: str, *_: object) -> str:
        return version

    def digests(self, rows: str, parts: Iterable[str]) -> dict[str, Digest]:
        """Rows are known here by what was read: the scope, or files of a version."""
        known = {FIRST: self.holds[0], SECOND: self.holds[1], "beside": self.beside[rows == STAGED]}
        return {name: known.get(name, self.all_added) for name in parts}


def verdict_of(stage: Stage) -> Verdict:
    validation = Validation(
        run_id=RUN,
        manifest=stage.manifest,
        stage=stage_of(RUN, BASE),
        staged=STAGED,
        chunks=stage.chunks(),
        # The first is of a claim that was lost: another one computed its chunk again.
        records=[
            record(9, FIRST, OTHER_TWO),
            record(1, FIRST, stage.observed[0]),
            record(2, SECOND, stage.observed[1]),
        ],
        target=cast("Target", stage),
        engine=cast("Engine", stage),
        now=datetime(2026, 3, 1, tzinfo=UTC),
        help=cast("RuleHelp", None),
        read_back=stage.read_back,
    )
    return validate(validation)


REPLACED = Stage()
OBSERVED = Stage(read_back=False)
EXACT = Stage(exact=True, added=(file(FIRST, 99),))
APPENDED = Stage(mode=PublishMode.APPEND)
MERGED = Stage(mode=PublishMode.MERGE)
SOUND = {
    "replace": (REPLACED, ("chunks complete", "files in scope", "schema", "counts", "digests", "file counts")),
    "replace, not read back": (OBSERVED, ("chunks complete", "files in scope", "schema", "digests", "file counts")),
    "exact": (EXACT, ("chunks complete", "rows carried over", "schema", "counts", "digests")),
    "append": (APPENDED, ("chunks complete", "files in scope", "schema", "digests", "file counts", "digests")),
    "merge": (MERGED, ("chunks complete", "schema", "merged by key", "file counts", "digests")),
}


@pytest.mark.parametrize(("stage", "names"), SOUND.values(), ids=SOUND)
def test_a_stage_that_is_as_it_was_written_passes_every_check(stage: Stage, names: tuple[str, ...]) -> None:
    verdict = verdict_of(stage)
    assert tuple(each.name for each in verdict.checks) == names
    assert [each for each in verdict.checks if not each.passed] == []
    assert verdict.outcome is Outcome.ACCEPTED


PENDING = {"states": (ChunkState.STAGED, ChunkState.PENDING)}
LESS = {"observed": (THREE, Digest(rows=1, high="5"))}
COLUMNS = {"columns": sample_manifest().target.identity.columns[:2]}
WRONG = {
    "a chunk is not staged": (REPLACED, PENDING, "chunks complete"),
    "a chunk is not appended": (APPENDED, PENDING, "chunks complete"),
    "a file may reach out": (REPLACED, {"outside": (file("2025-01-09", 2),)}, "files in scope"),
    "an appended file may reach out": (APPENDED, {"outside": (file("2025-01-09", 2),)}, "files in scope"),
    "a row came beside the scope": (EXACT, {"beside": (TWO, THREE)}, "rows carried over"),
    "another row is beside the scope": (EXACT, {"beside": (TWO, OTHER_TWO)}, "rows carried over"),
    "a column went": (REPLACED, {"moved": COLUMNS}, "schema"),
    "a column went, merged": (MERGED, {"moved": COLUMNS}, "schema"),
    "another table of that name": (OBSERVED, {"moved": {"uuid": "another"}}, "schema"),
    "rows are of other chunks": (REPLACED, {"holds": (TWO, THREE)}, "counts"),
    "the ledger has other rows": (REPLACED, {"on_record": (2, 3)}, "counts"),
    "another row is read": (REPLACED, {"holds": (THREE, OTHER_TWO)}, "digests"),
    "another row was written": (EXACT, {"observed": (THREE, OTHER_TWO)}, "digests"),
    "fewer rows were observed": (OBSERVED, LESS, "digests"),
    "another row was appended": (APPENDED, {"all_added": THREE + OTHER_TWO}, "digests"),
    "a file has more rows": (REPLACED, {"added": (file(FIRST, 3), file(SECOND, 3))}, "file counts"),
    "a file is missing": (OBSERVED, {"added": (file(FIRST, 3),)}, "file counts"),
    "fewer rows were merged": (MERGED, {"merged": Merged(inserted=3, replaced=1, stayed=3)}, "merged by key"),
}


@pytest.mark.parametrize(("stage", "change", "name"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_about_a_stage_fails_the_check_that_is_about_it(
    stage: Stage, change: dict[str, Any], name: str
) -> None:
    verdict = verdict_of(replace(stage, **change))
    (failed,) = [each for each in verdict.checks if not each.passed]
    assert (failed.name, failed.layer) == (name, Layer.SCHEMA if name == "schema" else Layer.TECHNICAL)
    assert (verdict.outcome, verdict.accepted) == (Outcome.REJECTED, False)


@pytest.mark.parametrize("stage", [REPLACED, APPENDED], ids=["replace", "append"])
def test_digests_of_another_version_are_no_proof_and_no_damage(stage: Stage) -> None:
    earlier = tuple(each.model_copy(update={"version": 1}) for each in stage.observed)
    verdict = verdict_of(replace(stage, observed=earlier))
    told = [each.detail for each in verdict.checks if not each.passed]
    assert told == ["another version of backcast has written the stage, and its digests cannot be compared: plan again"]
