"""Amendments: which chunks live files touch, where the run stands after one, and what the plan says about it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from backcast.errors import StateConflict
from backcast.model.amendment import Amendment, amendments, current_inputs
from backcast.model.digest import Digest
from backcast.model.finding import Severity
from backcast.model.manifest import LivePolicy, Settings
from backcast.model.run import Chunk, Event, StageRecord
from backcast.model.stage import recorded_base, recorded_stage, recorded_staged, stages_of
from backcast.model.states import ChunkState
from backcast.model.table import FileRef
from backcast.plan.preflight import policy_findings
from backcast.run.restage import touched_chunks
from backcast.testing.samples import sample_manifest

MANIFEST = sample_manifest(days=4)
DAYS = [chunk.id for chunk in MANIFEST.chunks]


def file(day: str) -> FileRef:
    return FileRef(f"live-{day}", f"day={day}", rows=1, size=1)


def record(token: int, *chunk_ids: str) -> StageRecord:
    digest = Digest(rows=1, high="1", low="1")
    return StageRecord(run_id="r", token=token, version=str(token), chunk_ids=chunk_ids, digest=digest, seconds=1.0)


def chunks(tokens: list[int]) -> list[Chunk]:
    return [
        Chunk(run_id="r", chunk_id=day, ordinal=number, state=ChunkState.STAGED, token=token)
        for number, (day, token) in enumerate(zip(DAYS, tokens, strict=True))
    ]


def event(number: int, name: str, **data: Any) -> Event:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Event(run_id="r", number=number, at=at, name=name, data=data, previous="", sha256="")


def amendment(number: int) -> Amendment:
    return Amendment(
        amendment=number,
        base=f"base-{number}",
        touched=(DAYS[0],),
        carried_from="staged-0",
        arrived=("live",),
        arrived_rows=2,
        inputs=tuple(pin.model_copy(update={"version": f"input-{number}"}) for pin in MANIFEST.inputs),
    )


def test_a_live_file_touches_every_chunk_that_shares_a_commit_with_its_own() -> None:
    records = [record(1, *DAYS[:2]), record(2, *DAYS[2:]), record(3, *DAYS[2:])]
    staged = chunks([1, 1, 3, 3])
    assert touched_chunks(MANIFEST, staged, records, [file(DAYS[1])]) == tuple(DAYS[:2])
    assert touched_chunks(MANIFEST, staged, records, [file(DAYS[1]), file(DAYS[2])]) == tuple(DAYS)


def test_a_live_file_that_cannot_be_placed_touches_everything() -> None:
    records = [record(number, day) for number, day in enumerate(DAYS)]
    staged = chunks([0, 1, 2, 3])
    assert touched_chunks(MANIFEST, staged, records, [file(DAYS[3])]) == (DAYS[3],)
    assert touched_chunks(MANIFEST, staged, records, [FileRef("old", "", rows=1, size=1)]) == tuple(DAYS)


def test_after_an_amendment_base_stage_and_inputs_are_its_own_and_the_old_staged_version_no_longer_counts() -> None:
    started = [event(1, "state.running", base="base-0"), event(2, "state.staged", staged="staged-0")]
    amended = [*started, event(3, "state.running", **amendment(1).as_json(), detail="live rows", to="running")]
    again = [*amended, event(4, "state.running", base="base-1", retried=1), event(5, "state.staged", staged="staged-1")]

    assert (recorded_base(started), recorded_staged(started)) == ("base-0", "staged-0")
    assert amendments(started) == ()
    assert current_inputs(MANIFEST, amendments(started)) == MANIFEST.inputs
    assert recorded_base(amended) == "base-1"
    with pytest.raises(StateConflict):
        recorded_staged(amended)
    assert amendments(again) == (amendment(1),)
    assert (recorded_base(again), recorded_staged(again)) == ("base-1", "staged-1")
    assert [pin.version for pin in current_inputs(MANIFEST, amendments(again))] == ["input-1"]
    first, second = (recorded_stage("r", each) for each in (started, again))
    assert first.branch != second.branch
    assert {each.branch for each in stages_of("r", again)} == {first.branch, second.branch}
    assert {each.base_tag for each in stages_of("r", again)} == {first.base_tag, second.base_tag}


@pytest.mark.parametrize(
    ("key", "exact", "codes"),
    [
        (("id",), False, {"policy.amendments"}),
        ((), False, {"policy.amendments", "policy.restage-needs-key"}),
        (("id",), True, {"policy.amendments", "policy.restage-needs-partitions"}),
    ],
)
def test_a_plan_with_restage_says_that_it_may_be_amended_and_refuses_what_it_cannot_prove(
    key: tuple[str, ...], exact: bool, codes: set[str]
) -> None:
    settings = Settings(live_policy=LivePolicy.RESTAGE, key=key)
    found = policy_findings(settings, MANIFEST.scope.model_copy(update={"exact": exact}))
    assert {each.code for each in found} == codes
    assert {each.code for each in found if each.severity is Severity.BLOCK} == codes - {"policy.amendments"}
    assert policy_findings(settings.model_copy(update={"live_policy": LivePolicy.FAIL}), MANIFEST.scope) == []
