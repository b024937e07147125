"""Runs that fail, drift, are cut short or must be refused. The live table never moves."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from backcast.cli.dispatch import dispatch
from backcast.demo.shell import in_process
from backcast.errors import ChunkFailed, Drifted, StateConflict
from backcast.model.finding import Severity
from backcast.model.pipeline import TableFormat
from backcast.model.states import ChunkState, RunState
from backcast.model.time import Interval
from backcast.testing.shop import Shop
from tests.e2e.test_publish import owned


def edit(shop: Shop, old: str, new: str) -> None:
    path = shop.root / "pipelines" / "revenue.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def blocking(shop: Shop) -> dict[str, str]:
    plan = shop.open().plan(shop.request())
    return {each.code: each.reason for each in plan.findings if each.severity is Severity.BLOCK}


def test_one_bad_chunk_fails_alone_and_a_retry_finishes_the_run(shop: Shop) -> None:
    """Chunks share a job of three; only the one whose rows divide by zero fails, and it names itself."""
    before = shop.rows()
    edit(
        shop, 'F.count(F.lit(1)).alias("sales")', 'F.sum(F.lit(1).cast("long") / F.lit(1)).cast("long").alias("sales")'
    )
    shop.spark.sql(f"INSERT INTO {shop.sales} VALUES (-1, 'S0', TIMESTAMP'2026-01-05 01:00:00Z', 1.00, 0)")
    edit(shop, 'F.lit(1).cast("long") / F.lit(1)', 'F.expr("1 / quantity * quantity")')
    control = shop.open()
    run_id = control.plan(shop.request()).run_id
    with pytest.raises(ChunkFailed, match="2026-01-05") as caught:
        control.run(run_id)
    assert f"backcast retry {run_id}" in caught.value.hint
    states = {chunk.chunk_id: chunk.state for chunk in control.world.reader().chunks(run_id)}
    assert states.pop("2026-01-05") is ChunkState.FAILED
    assert set(states.values()) == {ChunkState.STAGED}
    status = control.status(run_id)
    assert status.run.state is RunState.FAILED
    assert status.next_command == f"backcast retry {run_id}"
    with pytest.raises(ChunkFailed):
        control.retry(run_id)
    assert control.cancel(run_id).state is RunState.CANCELLED
    assert shop.refs() == {"main"}
    assert shop.rows() == before


def test_a_row_outside_window_and_warm_up_fails_the_chunk_and_names_the_row(shop: Shop) -> None:
    edit(shop, 'F.to_date("sold_at").alias("day")', 'F.expr("DATE\'1999-01-01\'").alias("day")')
    control = shop.open()
    run_id = control.plan(shop.request("2026-01-03", "2026-01-04")).run_id
    with pytest.raises(ChunkFailed, match="day = 1999-01-01"):
        control.run(run_id)


def test_warm_up_rows_reach_the_transform_and_are_cut_from_its_output(shop: Shop) -> None:
    text = (shop.root / "backcast.yaml").read_text()
    (shop.root / "backcast.yaml").write_text(
        text.replace("    output: revenue", "    output: revenue\n    warm_up: {before: 2d}")
    )
    edit(
        shop,
        "    return (",
        "    from pyspark.sql import Window\n"
        "    before = Window.partitionBy('shop').orderBy('day').rowsBetween(-2, 0)\n"
        "    return revenue_of(sales).withColumn('sales', F.sum('sales').over(before))\n\n\n"
        "def revenue_of(sales):\n    return (",
    )
    control = shop.open()
    plan = control.plan(shop.request("2026-01-03", "2026-01-05"))
    assert (plan.manifest.input_windows[0].start.day, plan.manifest.scope.windows[0].start.day) == (1, 3)
    control.run(plan.run_id)
    control.publish(plan.run_id)
    row = shop.spark.sql(f"SELECT sum(sales) FROM {shop.revenue} WHERE day = '2026-01-03'").collect()[0]
    assert row[0] == 2 * 40, "a shop sells every other day, so each row counts itself and the one from the warm-up"
    days = shop.spark.sql(f"SELECT count(DISTINCT day) FROM {shop.revenue}").collect()[0][0]
    assert days == 10


@pytest.mark.parametrize(
    ("old", "new", "code", "names"),
    [
        (
            '.alias("revenue"))',
            '.alias("revenue")).withColumn("shop", F.expr("uuid()"))',
            "code.nondeterministic",
            "uuid",
        ),
        (
            '.alias("revenue"))',
            '.alias("revenue")).withColumn("day", F.current_date())',
            "code.nondeterministic",
            "current_date",
        ),
        ('.alias("revenue"))', '.alias("revenue")).withColumn("x", F.lit(1))', "schema.extra-column", "'x'"),
        ('.alias("revenue"))', '.alias("revenue")).drop("sales")', "schema.missing-column", "'sales'"),
        ('.alias("revenue"))', '.alias("revenue")).withColumn("sales", F.lit("x"))', "schema.type", "string"),
        (
            "    sales = inputs",
            "    raise ValueError('no rate for EUR')\n    sales = inputs",
            "code.raises",
            "no rate for EUR",
        ),
        ('inputs["sales"]', 'inputs["orders"]', "code.raises", "orders"),
        ('inputs["sales"]', 'ctx.spark.table("NAMESPACE.sales")', "input.undeclared", "sales on its own"),
        (
            'inputs["sales"]',
            'inputs["sales"].where(F.expr("id IN (SELECT sales FROM NAMESPACE.revenue)"))',
            "input.undeclared",
            "revenue on its own",
        ),
    ],
)
def test_a_plan_is_refused_with_the_reason_named(shop: Shop, old: str, new: str, code: str, names: str) -> None:
    edit(shop, old, new.replace("NAMESPACE", shop.namespace))
    found = blocking(shop)
    assert names in found[code], found
    assert shop.open().list() == []


def test_code_that_changed_since_the_plan_does_not_run(shop: Shop) -> None:
    run_id = shop.open().plan(shop.request()).run_id
    edit(shop, "* F.col", "+ F.col")
    with pytest.raises(Drifted, match=r"pipelines/revenue\.py"):
        shop.open().run(run_id)


def test_live_rows_that_arrive_in_scope_between_plan_and_run_are_drift(shop: Shop) -> None:
    run_id = shop.open().plan(shop.request()).run_id
    shop.live("2026-01-04")
    with pytest.raises(Drifted, match=r"1 file \(1 row\)"):
        shop.open().run(run_id)


@pytest.mark.parametrize("shop", list(TableFormat), indirect=True)
def test_an_input_version_that_was_expired_is_drift(shop: Shop) -> None:
    """Delta's log still tells of a version whose files VACUUM took; of files that no chunk reads nobody is told."""
    shop.spark.sql(f"INSERT INTO {shop.sales} VALUES (-1, 'S0', TIMESTAMP'2026-01-09 01:00:00Z', 1.00, 1)")
    control, sales = shop.open(), owned(shop, shop.sales)
    run_id = control.plan(shop.request()).run_id
    sales.delete("id = -1")
    sales.expire(sales.expiries[0])
    if shop.format is TableFormat.DELTA:
        (pin,), world = control.status(run_id).manifest.inputs, control.world
        window = Interval(start=datetime(2026, 1, 3, tzinfo=UTC), end=datetime(2026, 1, 7, tzinfo=UTC))
        world.input(world.pipeline("revenue").inputs[0]).check(pin, {"all": window})
        sales.delete("id = 2")
        sales.expire(sales.expiries[0])
    with pytest.raises(Drifted, match="lost files" if shop.format is TableFormat.DELTA else "is gone"):
        control.run(run_id)


def test_planning_changes_neither_table_nor_store(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    """A dry run leaves every byte of metadata where it was, and so does the check of a request file, which asks the
    tables what they still hold if it is told to; a plan adds one planned run and touches no table.
    """
    file = shop.root / "request.yaml"
    file.write_text("pipeline: revenue\nfrom: 2025-01-03\nto: 2025-01-05\nreason: revenue forgot the quantity\n")

    def found(*options: str) -> set[str]:
        with in_process(shop.open()):
            dispatch(["request", "validate", str(file), *options, "--json", "--project", str(shop.root)])
        return {each["code"] for each in json.loads(capsys.readouterr().out)[0]["findings"]}

    def fingerprint() -> tuple[object, ...]:
        tables = [
            shop.spark.sql(f"SELECT * FROM {name}.metadata_log_entries").count() for name in (shop.sales, shop.revenue)
        ]
        files = sorted(str(path) for path in shop.root.rglob("*") if "__pycache__" not in str(path))
        return (*tables, files)

    before = fingerprint()
    plan = shop.open().plan(shop.request(), record=False)
    assert not plan.recorded
    assert fingerprint() == before
    assert "request.retention" in found()
    deep = found("--deep")
    assert "input.empty" in deep
    assert "request.retention" not in deep
    assert fingerprint() == before
    assert shop.open().list() == []
    recorded = shop.open().plan(shop.request())
    assert recorded.recorded
    assert [run.run_id for run in shop.open().list()] == [recorded.run_id]
    assert fingerprint()[:2] == before[:2]


def test_an_overlapping_open_run_blocks_a_second_plan(shop: Shop) -> None:
    control = shop.open()
    first = control.plan(shop.request()).run_id
    codes = {each.code for each in control.plan(shop.request("2026-01-04", "2026-01-05"), record=False).findings}
    assert "overlap.planned-run" in codes
    control.run(first)
    codes = {each.code for each in control.plan(shop.request("2026-01-04", "2026-01-05"), record=False).findings}
    assert "overlap.open-run" in codes
    codes = {each.code for each in control.plan(shop.request("2026-01-08", "2026-01-09"), record=False).findings}
    assert not {each for each in codes if each.startswith("overlap")}


def test_a_published_run_cannot_be_cancelled(shop: Shop) -> None:
    control = shop.open()
    run_id = control.backfill(shop.request("2026-01-03", "2026-01-04")).run_id
    with pytest.raises(StateConflict):
        control.cancel(run_id)


def test_a_python_function_that_raises_fails_its_chunk_with_its_own_words(shop: Shop) -> None:
    edit(
        shop,
        "    return (",
        "    from pyspark.sql.types import LongType\n\n"
        "    @F.udf(LongType())\n"
        "    def picky(number):\n"
        "        raise ValueError('no rate for EUR')\n\n"
        "    sales = sales.withColumn('quantity', picky('quantity'))\n"
        "    return (",
    )
    control = shop.open()
    plan = control.plan(shop.request("2026-01-03", "2026-01-04"))
    assert "code.python-functions" in {each.code for each in plan.findings}
    with pytest.raises(ChunkFailed, match="no rate for EUR"):
        control.run(plan.run_id)


LINEAGE = (
    "produced_by_run_id STRING",
    "transform_version STRING",
    "input_snapshot_id STRING",
    "input_range_start STRING",
    "input_range_end TIMESTAMP",
    "reference_data_version STRING",
    "restatement_reason STRING",
)


def test_rows_and_commits_say_which_run_made_them(shop: Shop) -> None:
    """Lineage columns are filled when the table has them and the pipeline asks for them; commits always tell."""
    shop.spark.sql(f"ALTER TABLE {shop.revenue} ADD COLUMNS ({', '.join(LINEAGE)})")
    text = (shop.root / "backcast.yaml").read_text()
    (shop.root / "backcast.yaml").write_text(
        text.replace("    output: revenue", "    output: revenue\n    lineage_columns: true")
    )
    control = shop.open()
    publication = control.backfill(shop.request("2026-01-03", "2026-01-04"))
    made = shop.spark.sql(
        f"SELECT DISTINCT {', '.join(name.split()[0] for name in LINEAGE)} FROM {shop.revenue} WHERE day = '2026-01-03'"
    ).collect()
    pin = control.status(publication.run_id).manifest.inputs[0]
    assert [tuple(row) for row in made] == [
        (
            publication.run_id,
            "2.0.0",
            f"{shop.sales}@{pin.version}",
            "2026-01-03T00:00:00+00:00",
            datetime(2026, 1, 4, tzinfo=UTC).astimezone().replace(tzinfo=None),
            None,
            "revenue forgot the quantity",
        )
    ]
    (summary,) = shop.spark.sql(
        f"SELECT summary FROM {shop.revenue}.snapshots WHERE snapshot_id = {publication.version}"
    ).collect()[0]
    assert summary["backcast.run"] == publication.run_id
    assert summary["backcast.reason"] == "revenue forgot the quantity"
    assert summary["backcast.manifest"] == control.status(publication.run_id).run.manifest_sha256
    assert f"{shop.sales}@" in summary["backcast.inputs"]
    evidence = control.evidence(publication.run_id)
    assert evidence.publications[0].version == publication.version
    assert evidence.events[-1].name == "attested"


def test_a_run_is_judged_by_what_it_observed_and_validate_reads_the_stage_back(shop: Shop) -> None:
    control = shop.open()
    run_id = control.plan(shop.request()).run_id
    assert control.run(run_id).state is RunState.ACCEPTED
    verdict = control.world.reader().verdict(run_id)
    assert verdict is not None
    observed = next(check for check in verdict.checks if check.name == "digests")
    assert observed.passed
    assert "observed, 8 rows" in observed.detail
    assert verdict.partitions == ()
    confirmed = control.validate(run_id)
    assert next(check for check in confirmed.checks if check.name == "digests").detail.startswith("2 commits confirmed")
    assert sum(each.digest.rows for each in confirmed.partitions) == confirmed.rows == 8
