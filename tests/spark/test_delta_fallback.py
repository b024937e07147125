"""Delta in a version on which exact commits are not proven: rows are written, the plan says so, and none is lost."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from backcast.control import ControlPlane
from backcast.errors import Conflict, OutcomeUnknown, ScopeChanged, StateConflict, UndoRefused
from backcast.model.finding import Finding, Severity
from backcast.model.pipeline import TableFormat
from backcast.model.stage import publish_fence
from backcast.model.states import RunState
from backcast.model.table import Change, FileList, NetChange
from backcast.project.config import load_project
from backcast.spark.delta import fit
from backcast.targets.delta import rewrite
from backcast.targets.delta.target import DeltaTarget
from backcast.testing.faults import at_point
from backcast.testing.shop import Shop
from backcast.testing.target_wire import answer_lost
from tests.crash.life import DoomedWiring
from tests.spark.delta_kit import COLUMNS, SCOPE, Create, publish, rows, staged, undo

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WINDOW = ("2026-01-03", "2026-01-05")


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "PROVEN", ("0.0.0",))


def version_findings(target: DeltaTarget) -> list[Finding]:
    found = target.findings(FileList(None, ()), timedelta(days=1))
    return [each for each in found if each.code.startswith("target.delta-")]


def test_the_plan_says_what_a_version_that_is_not_proven_will_do(
    create: Create, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its number, by a call that has other arguments, by a class that is not there; a reader that does not fit ends
    it."""
    target = create()
    assert version_findings(target) == []
    calls = {"DeltaLog": {"startTransaction": 7}}, {"NoSuchClass": {"commit": 1}}
    for name, value in (("PROVEN", ("0.0.0",)), *(("_COMMITTING", each) for each in calls)):
        with monkeypatch.context() as patch:
            patch.setattr(fit, name, value)
            (found,) = version_findings(target)
            assert (found.code, found.severity) == ("target.delta-rewrite", Severity.WARN)
            assert "write the scope's rows" in found.reason
    monkeypatch.setattr(fit, "_READING", {"Snapshot": {"allFiles": 3}})
    (found,) = version_findings(target)
    assert (found.code, found.severity) == ("target.delta-version", Severity.BLOCK)
    assert "Snapshot.allFiles" in found.reason


@pytest.mark.usefixtures("unproven")
@pytest.mark.parametrize(
    ("columns", "layout", "properties"),
    [
        pytest.param(COLUMNS, "", "'delta.enableDeletionVectors' = 'true'", id="unpartitioned, deletion vectors"),
        pytest.param(COLUMNS, "CLUSTER BY (day)", "'delta.enableChangeDataFeed' = 'true'", id="clustered, change feed"),
        pytest.param(COLUMNS, "PARTITIONED BY (day)", "'delta.columnMapping.mode' = 'name'", id="column mapping"),
        pytest.param(
            "id BIGINT NOT NULL, day DATE, v DOUBLE",
            "",
            "'delta.constraints.positive' = 'v >= 0', 'delta.enableInCommitTimestamps' = 'true'",
            id="constraints, in-commit timestamps",
        ),
    ],
)
def test_tables_of_every_kind_are_published_and_undone_by_writing_rows(
    create: Create, columns: str, layout: str, properties: str
) -> None:
    """No property changes, and no row is only masked: an undo could not tell that from somebody's delete."""
    target = create(columns, layout, properties)
    before, settings = rows(target), target.facts().properties
    net = staged(target, exact=not layout.startswith("PARTITIONED"))
    change = publish(target, net)
    assert rows(target) == Counter({(a, b, c * 10 if b.day == 2 else c): n for (a, b, c), n in before.items()})  # type: ignore[attr-defined, operator]
    done = written(target)
    assert done.add
    assert done.add.isdisjoint(change.add)
    assert not target.files(target.facts().version, SCOPE).has_deletes
    undo(target, net, done)
    assert rows(target) == before
    assert target.facts().properties == settings


def written(target: DeltaTarget) -> Change:
    """The newest commit as the change that landed: what it wrote, and what it replaced."""
    version = target.facts().version
    assert version is not None
    found = target.rewritten(version)
    assert found is not None
    return Change("", version, SCOPE, None, found.added, found.removed, guard_rows=True, properties={})


@pytest.mark.usefixtures("unproven")
def test_a_masked_row_in_scope_is_seen_even_if_another_one_is_unmasked(create: Create, spark: SparkSession) -> None:
    """Between decision and write: the same files with as many rows are not the same rows."""
    target = create(properties="'delta.enableDeletionVectors' = 'true'")
    name, whole = target.facts().identity.name, target.facts().version

    def delete(number: int) -> None:
        spark.sql(f"DELETE FROM {name} WHERE id = {number}")

    def restore() -> None:
        spark.sql(f"RESTORE TABLE {name} TO VERSION AS OF {whole}")
        delete(4)

    net = staged(target)
    with at_point("publish.before-commit", lambda: delete(1)), pytest.raises(Conflict, match="came or went"):
        publish(target, net)
    masked = target.files(target.facts().version, SCOPE)
    with at_point("publish.before-commit", restore), pytest.raises(Conflict, match="came or went"):
        publish(target, net)
    after = target.files(target.facts().version, SCOPE)
    assert (after.paths, after.rows, after.has_deletes) == (masked.paths, masked.rows, True)
    assert {row[0] for row in rows(target)} == set(range(12)) - {4}


@pytest.mark.usefixtures("unproven")
def test_a_live_row_that_lands_while_rows_are_written_is_a_conflict(
    create: Create, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the transaction's snapshot was looked at, only Delta itself can see it."""
    target = create()
    name, net = target.facts().identity.name, staged(target)
    started, landed = str(tmp_path / "started"), str(tmp_path / "landed")

    def never(number: int) -> bool:
        Path(started).touch()
        _until(landed)
        return False

    def slowly(*given: Any) -> DataFrame:
        return guard(*given).unionByName(target.read(net.base, SCOPE).coalesce(1).where(F.udf(never, "boolean")("id")))

    def live() -> None:
        _until(started)
        spark.newSession().sql(f"INSERT INTO {name} VALUES (900, DATE'2026-01-02', 1.0)")
        Path(landed).touch()

    guard = rewrite._alarm
    monkeypatch.setattr(rewrite, "_alarm", slowly)
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(live)
        with pytest.raises(Conflict, match="CONCURRENT_APPEND"):
            publish(target, net)
        writer.result()
    assert {row[0] for row in rows(target)} == {*range(12), 900}


@pytest.mark.usefixtures("unproven")
def test_a_fence_that_landed_on_an_older_head_stops_a_later_attempt(create: Create, spark: SparkSession) -> None:
    """Delta passes such a write by in silence; it is told as what it is. Even where no file changes hands."""
    target = create()
    name, net = target.facts().identity.name, replace(staged(target), added=(), removed=())
    late = DeltaTarget(spark, name)
    spark.sql(f"INSERT INTO {name} VALUES (900, DATE'2026-01-01', 1.0)")
    with (
        at_point("publish.before-commit", lambda: publish_on("1", late, net)),
        pytest.raises(StateConflict, match="landed before"),
    ):
        publish(target, net)
    version = target.facts().version
    assert target.probe(publish_fence("r1", 1)) == version == "3"


def publish_on(head: str, target: DeltaTarget, net: NetChange) -> None:
    change = Change(
        publish_fence("r1", 1), head, SCOPE, net.staged, frozenset(), frozenset(), guard_rows=True, properties={}
    )
    target.commit(change)


def _until(path: str) -> None:
    for _ in range(600):
        if Path(path).exists():
            return
        time.sleep(0.1)
    raise AssertionError(path)


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession, namespace: str, lake_root: Path, unproven: None) -> Shop:
    return Shop.create(tmp_path, spark, namespace, lake_root, TableFormat.DELTA)


def accepted(shop: Shop) -> tuple[ControlPlane, str]:
    control = shop.open()
    plan = control.plan(shop.request(*WINDOW))
    assert not plan.refused, plan.findings
    assert "target.delta-rewrite" in {each.code for each in plan.findings}
    assert control.run(plan.run_id).state is RunState.ACCEPTED, control.status(plan.run_id).because
    return control, plan.run_id


def test_a_restatement_from_plan_to_undo_whose_answer_was_lost(shop: Shop) -> None:
    """What was written is what was validated; its files are the ones that an undo looks for. Publishing again would
    need the base's own files, which an undo by rows cannot bring back: it is refused."""
    before = shop.rows()
    control, run_id = accepted(shop)
    wanted = shop.expected(*WINDOW)
    with answer_lost(shop.spark, "save"), pytest.raises(OutcomeUnknown):
        ControlPlane(DoomedWiring(load_project(shop.root))).publish(run_id)
    assert control.status(run_id).run.state is RunState.PUBLISHING
    publication = shop.open().publish(run_id)
    assert shop.rows() == wanted
    target = control.world.target("revenue")
    live = target.files(publication.version, control.world.reader().manifest(run_id).scope.predicate)
    assert set(publication.added) == live.paths

    late = [shop.live("2026-01-04", "LATE"), shop.live("2026-01-09", "LATE")]
    control.undo(run_id)
    assert shop.rows() == before + Counter(late)
    with pytest.raises(ScopeChanged, match="scope changed since the base"):
        control.publish(run_id)
    assert shop.rows() == before + Counter(late)


def test_live_rows_that_are_kept_stay_through_publish_and_undo(shop: Shop, lake_root: Path) -> None:
    """Though both write them once more. One that arrives at the last moment is looked at again."""
    shop.configure(lake_root, live="keep")
    before = shop.rows()
    control, run_id = accepted(shop)
    restated = shop.expected(*WINDOW)
    live = [shop.live("2026-01-04", "EARLY")]
    with at_point("publish.before-commit", lambda: live.append(shop.live("2026-01-03", "LATE"))):
        control.publish(run_id)
    assert len(live) == 2
    assert shop.rows() == restated + Counter(live)
    with at_point("undo.before-commit", lambda: live.append(shop.live("2026-01-03", "LATEST"))):
        control.undo(run_id)
    assert len(live) == 3
    assert shop.rows() == before + Counter(live)


def test_a_compacted_publish_is_undone_row_by_row_when_asked(shop: Shop) -> None:
    before = shop.rows()
    control, run_id = accepted(shop)
    control.publish(run_id)
    live = shop.live("2026-01-03", "LATE")
    shop.spark.sql(f"OPTIMIZE {shop.revenue}")
    with pytest.raises(UndoRefused, match="compacted"):
        control.undo(run_id)
    control.undo(run_id, rewrite=True)
    assert shop.rows() == before + Counter([live])


def test_a_restage_carries_rows_where_it_cannot_carry_files(shop: Shop, lake_root: Path) -> None:
    """What no live row reached is not computed again, and what is published is right."""
    shop.configure(lake_root, live="restage", chunks_per_job=1)
    control, run_id = accepted(shop)
    reader = control.world.reader()
    tokens = {chunk.chunk_id: chunk.token for chunk in reader.chunks(run_id)}
    shop.spark.sql(f"INSERT INTO {shop.sales} VALUES (999, 'NEW', TIMESTAMP'2026-01-04 12:00:00Z', 1.00, 1)")
    live = shop.live("2026-01-04", "NEW")
    wanted = shop.expected(*WINDOW)
    assert wanted[live] == 1
    control.publish(run_id)
    assert shop.rows() == wanted
    again = [chunk.chunk_id for chunk in reader.chunks(run_id) if chunk.token != tokens[chunk.chunk_id]]
    assert again == ["2026-01-04"]


def test_a_publish_that_wrote_other_rows_than_the_validated_ones_is_not_called_published(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files cannot be compared, so rows are."""
    control, run_id = accepted(shop)
    monkeypatch.setattr("backcast.targets.delta.rewrite.live_add", _first_file_only())
    with pytest.raises(OutcomeUnknown, match="does not hold what was validated"):
        control.publish(run_id)


def test_a_version_of_delta_that_reads_elsewhere_than_in_its_transaction_is_found_out(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guard rests on where Delta plans a read. Were that to change, a live row would go, and not in silence."""
    control, run_id = accepted(shop)
    lost: list[tuple[object, ...]] = []
    guard = rewrite._alarm
    monkeypatch.setattr(rewrite, "_alarm", lambda *given: guard(*given).limit(0))
    with (
        at_point("publish.before-commit", lambda: lost.append(shop.live("2026-01-04", "LOST"))),
        pytest.raises(OutcomeUnknown, match="took out 1 file that nobody decided on"),
    ):
        control.publish(run_id)
    assert shop.rows()[lost[0]] == 0


def _first_file_only() -> Callable[..., dict[str, object]]:
    """A fault of ours: every file that comes is the same one."""
    from backcast.targets.delta.publish import live_add

    seen: list[dict[str, object]] = []

    def broken(*given: object) -> dict[str, object]:
        seen.append(live_add(*given))  # type: ignore[arg-type]
        return seen[0]

    return broken
