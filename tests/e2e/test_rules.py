"""Rules and gates of a project decide what becomes of its runs, on both formats."""

from __future__ import annotations

import json
from textwrap import dedent, indent

import pandera.config
import pytest

from backcast.control import ControlPlane
from backcast.errors import ConfigError, Drifted, NotValidated, StateConflict
from backcast.model.pipeline import TableFormat
from backcast.model.verdict import Consequence, Outcome, Verdict
from backcast.project.config import load_project
from backcast.project.rule_code import load_rules
from backcast.testing.shop import Shop

both = pytest.mark.parametrize("shop", list(TableFormat), indirect=True)

CHECKS = """
from pyspark.sql import functions as F
import pandera.pyspark as pa
import pyspark.sql.types as T


def positive(stage, base, ctx):
    return F.col("revenue") > 0


def no_small_shop(stage, base, ctx):
    return stage.join(base.select("day", "shop"), ["day", "shop"], "left_semi").where("sales < 100")


def breaks(stage, base, ctx):
    raise RuntimeError("no idea")


def tells(stage, base, ctx):
    raise ValueError(stage.collect()[0])


class Sold(pa.DataFrameModel):
    shop: T.StringType() = pa.Field()
    sales: T.LongType() = pa.Field(gt=0)


class SoldMore(pa.DataFrameModel):
    sales: T.LongType() = pa.Field(gt=50)


sold = pa.DataFrameSchema({"sales": pa.Column(T.LongType(), pa.Check.gt(0))})
sold_more = pa.DataFrameSchema({"sales": pa.Column(T.LongType(), pa.Check.gt(50))})

import warnings

with warnings.catch_warnings():
    # It imports modules that Python is about to give up.
    warnings.simplefilter("ignore")
    import great_expectations as gx
    import great_expectations.expectations as gxe

suite = gx.ExpectationSuite(
    "daily", expectations=[gxe.ExpectColumnValuesToBeBetween(column="sales", min_value=1, max_value=20)]
)
more = gx.ExpectationSuite("more", expectations=[gxe.ExpectColumnValuesToBeBetween(column="sales", min_value=21)])
"""


def declare(shop: Shop, dataset: str = "", pipeline: str = "") -> None:
    """Rules, gates and the like, added to the project's file as a person would write them."""
    file = shop.root / "backcast.yaml"
    text = file.read_text()
    keys = indent(dedent(dataset).strip("\n"), "    ")
    text = text.replace("    key: [day, shop]\n", f"    key: [day, shop]\n{keys}\n")
    text += indent(dedent(pipeline).strip("\n"), "    ") + "\n"
    file.write_text(text)


def verdict_of(shop: Shop, *window: str) -> tuple[ControlPlane, str, Verdict]:
    control = shop.open()
    plan = control.plan(shop.request(*window))
    assert not plan.refused, plan.manifest.findings
    run = control.run(plan.run_id)
    verdict = control.world.reader().verdict(run.run_id)
    assert verdict is not None
    return control, run.run_id, verdict


HOLD = """
    rules:
      - not_null: [day, shop]
      - unique: [day, shop]
      - unique: {columns: [shop], per: partition}
      - range: {column: revenue, min: 0, max: 100000}
      - accepted: {column: shop, values: [S0, S1, S2, S3]}
      - pattern: {column: shop, matches: "^S[0-9]$"}
      - length: {column: shop, min: 2, max: 2}
      - fresh: {column: day, within: 1d}
      - fresh: {column: day, within: 1d, per: partition, name: every day is there}
      - monotonic: {column: day, by: [shop], order: day}
      - sum: {column: sales, tolerance: 0%}
      - mean: {column: sales, tolerance: 0%, per: partition}
      - drift: {column: shop, at_most: 1%}
      - references: {column: shop, dataset: sales, to: shop}
      - rows: {input: sales, tolerance: 95%, per: partition}
      - sql: {query: "SELECT * FROM stage WHERE sales <> 20"}
      - sql: "SELECT shop FROM sales GROUP BY shop EXCEPT SELECT shop FROM stage"
      - python: checks:positive
      - pandera: checks:Sold
      - pandera: checks:sold
      - great_expectations: expectations/daily.json
      - great_expectations: checks:suite
"""


@both
def test_a_stage_that_holds_every_kind_of_rule_is_accepted_and_published(shop: Shop) -> None:
    declare(shop, HOLD)
    write_code(shop)
    control, run_id, verdict = verdict_of(shop)
    assert [each for each in verdict.results if not each.passed] == []
    assert len(verdict.results) == 22
    assert verdict.outcome is Outcome.ACCEPTED
    # A second look reads everything back, in the same pass.
    again = control.validate(run_id)
    assert (len(again.partitions), again.outcome) == (4, Outcome.ACCEPTED)
    wanted = shop.expected()
    control.publish(run_id)
    assert shop.rows() == wanted


def write_code(shop: Shop) -> None:
    (shop.root / "checks.py").write_text(CHECKS)
    (shop.root / "expectations").mkdir(exist_ok=True)
    expectation = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "sales", "min_value": 1}}
    suite = {"name": "daily", "expectations": [expectation]}
    (shop.root / "expectations" / "daily.json").write_text(json.dumps(suite))
    expectation["kwargs"] = {"column": "sales", "min_value": 21}
    (shop.root / "expectations" / "more.json").write_text(json.dumps(suite))


BREAK = {
    "not_null": ("not_null: {columns: [shop], where: 'false'}", None),
    "not_null that is broken": ("not_null: [revenue]", "2 of 8 rows without revenue"),
    "monotonic": ("monotonic: {column: revenue, by: [day], order: shop}", "1 of 8 rows where revenue falls"),
    "unique": ("unique: [shop]", "4 keys of shop more than once (8 rows, 8 of the rows again outside the scope)"),
    "range": ("range: {column: sales, max: 9}", "8 of 8 rows with sales above 9"),
    "accepted": ("accepted: {column: shop, values: [S0, S1, S2]}", "2 of 8 rows with a shop other than S0, S1, S2"),
    "pattern": ("pattern: {column: shop, matches: '[0-2]$'}", "2 of 8 rows with shop not like [0-2]$"),
    "length": ("length: {column: shop, max: 1}", "8 of 8 rows with shop not of length 0 .. 1"),
    "fresh": ("fresh: {column: day, within: 12h}", "1 day before the scope's end, 12 hours is allowed"),
    "sum": ("sum: {column: revenue, tolerance: 5%}", "5% may move"),
    "mean": ("mean: {column: revenue, tolerance: 5%, per: partition}", "not in 4 of 4 partitions, first 2026-01-03"),
    "drift": ("drift: {column: revenue, at_most: 10%}", "of the values of revenue moved, most of all"),
    "rows": ("rows: {input: sales}", "8 rows, input sales has 160, 0% may differ"),
    "rows by partition": (
        "rows: {input: sales, per: partition}",
        "not in 4 of 4 partitions, first 2026-01-03: 2 rows, input sales has 40, 0% may differ",
    ),
    "references": ("references: {column: sales, dataset: sales, to: quantity}", "8 of 8 rows with sales unknown to"),
    "sql": ("sql: SELECT shop, count(*) AS days FROM stage GROUP BY shop", "4 rows returned"),
    "sql on base": ("sql: SELECT * FROM stage EXCEPT SELECT * FROM base", "8 rows returned"),
    "python": ("python: checks:no_small_shop", "8 rows returned"),
    "python that raises": ("python: checks:breaks", "checks.py:16: RuntimeError: no idea"),
    "pandera": ("pandera: checks:SoldMore", "1 check failed: sales: greater_than(50)"),
    "pandera that holds beside it": ("pandera: checks:Sold", None),
    "great_expectations": (
        "great_expectations: expectations/more.json",
        "1 expectation failed: sales: expect_column_values_to_be_between",
    ),
    "pandera, a schema": ("pandera: checks:sold_more", "1 check failed: sales: greater_than(50)"),
    "great_expectations, a suite": (
        "great_expectations: checks:more",
        "1 expectation failed: sales: expect_column_values_to_be_between",
    ),
}


@both
def test_each_kind_of_rule_blocks_with_its_reason_and_nothing_gets_past_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in one run: a verdict names every rule that failed, and no door leads around it."""
    # As after PANDERA_VALIDATION_DEPTH=SCHEMA_ONLY, which others set to make their own programs faster.
    monkeypatch.setattr(pandera.config.CONFIG, "validation_depth", pandera.config.ValidationDepth.SCHEMA_ONLY)
    pandera.config.reset_config_context()
    listed = "".join(f"\n      - {text}" for text, _ in BREAK.values())
    declare(shop, f"    rules:{listed}")
    write_code(shop)
    code = shop.root / "pipelines" / "revenue.py"
    code.write_text(code.read_text().replace('F.col("amount") *', 'F.when(F.col("shop") != "S0", F.col("amount")) *'))
    before = shop.rows()
    control, run_id, verdict = verdict_of(shop)
    assert verdict.outcome is Outcome.REJECTED
    for (name, (_, says)), result in zip(BREAK.items(), verdict.results, strict=True):
        assert result.passed is (says is None), name
        assert (says or "") in result.detail, name
        check = next(each for each in verdict.checks if each.name == result.name)
        assert (check.passed, check.layer, check.consequence) == (result.passed, result.layer, Consequence.BLOCK)
    for door in (control.publish, control.run, control.retry):
        with pytest.raises((NotValidated, StateConflict)):
            door(run_id)
    assert shop.rows() == before
    ranged = next(each for each in verdict.results if each.kind == "range")
    assert (ranged.failing_rows, len(ranged.samples)) == (8, 5)
    assert set(ranged.samples[0]) == {"day", "shop", "sales", "revenue"}


@both
def test_a_warning_is_told_and_blocks_nothing(shop: Shop) -> None:
    declare(shop, "rules:\n  - range: {column: sales, max: 9, severity: warn}")
    control, run_id, verdict = verdict_of(shop)
    (result,) = verdict.results
    assert (result.passed, result.consequence, verdict.outcome) == (False, Consequence.WARN, Outcome.ACCEPTED)
    wanted = shop.expected()
    control.publish(run_id)
    assert shop.rows() == wanted


def test_rules_of_dataset_and_pipeline_both_apply_and_masked_values_are_nowhere(shop: Shop) -> None:
    declare(
        shop,
        "masked: [Shop]\nrules:\n  - accepted: {column: shop, values: [S0, S1, S2], severity: warn}",
        "rules:\n  - sql: {query: 'SELECT concat(shop, 1) AS secret FROM stage', severity: warn}\n"
        "  - drift: {column: shop, at_most: 0%, where: shop <> 'S3'}",
    )
    _, _, verdict = verdict_of(shop)
    assert [each.kind for each in verdict.results] == ["accepted", "sql", "drift"]
    assert {sample["shop"] for sample in verdict.results[0].samples} == {"***"}
    assert {sample["secret"] for sample in verdict.results[1].samples} == {"***"}
    assert "S3" not in verdict.model_dump_json()


def test_an_error_tells_no_masked_value(shop: Shop) -> None:
    """Spark and Python quote what they cannot read."""
    declare(
        shop,
        "masked: [shop]\nrules:\n  - not_null: {columns: [day], where: CAST(shop AS INT) > 0}\n"
        "  - python: checks:tells",
    )
    write_code(shop)
    _, _, verdict = verdict_of(shop)
    assert verdict.outcome is Outcome.REJECTED
    kinds = ("judging the rules: SparkNumberFormatException: [CAST_INVALID_INPUT]", "checks.py:20: ValueError")
    for result, kind in zip(verdict.results, kinds, strict=True):
        assert result.detail == f"{kind}; its message is not kept, because it may hold masked values"
    assert "S1" not in verdict.model_dump_json()


def test_a_rule_or_its_code_that_changed_after_the_plan_is_drift(shop: Shop) -> None:
    declare(shop, "rules:\n  - python: checks:positive\n  - great_expectations: expectations/daily.json")
    write_code(shop)
    control = shop.open()
    first, second = (
        control.plan(shop.request(*window)) for window in (("2026-01-03", "2026-01-04"), ("2026-01-05", "2026-01-06"))
    )
    file = shop.root / "checks.py"
    file.write_text(file.read_text().replace('col("revenue") > 0', 'col("revenue") > -1'))
    with pytest.raises(Drifted, match=r"files: checks\.py"):
        shop.open().run(first.run_id)
    file.write_text(CHECKS)
    suite = shop.root / "expectations" / "daily.json"
    kept = suite.read_text()
    suite.write_text(kept.replace("1}", "0}"))
    with pytest.raises(Drifted, match=r"files: expectations/daily\.json"):
        shop.open().run(first.run_id)
    suite.write_text(kept)
    yaml = shop.root / "backcast.yaml"
    yaml.write_text(yaml.read_text().replace("python: checks:positive", "python: checks:no_small_shop"))
    with pytest.raises(Drifted, match=r"backcast\.yaml changed since the plan"):
        shop.open().run(second.run_id)


@pytest.mark.parametrize(
    ("rules", "code", "says"),
    [
        ("rules: [{not_null: [shops]}]", "rules.unknown-column", "'shops'"),
        ("rules: [{references: {column: shop, dataset: sales, to: store}}]", "rules.unknown-column", "'store'"),
        ("masked: [secret]", "rules.unknown-column", "'secret'"),
        ("rules: [{sum: {column: shop, tolerance: 1%}}]", "rules.type", "string"),
        ("rules: [{rows: {input: orders}}]", "rules.unknown-input", "'orders'"),
        ("rules: [{rows: {input: sales, where: revenue > 1}}]", "rules.condition", "over input sales: [UNRESOLVED"),
        ("rules: [{range: {column: sales, min: few}}]", "rules.condition", "'few' is not a value of type bigint"),
        ("rules: [{sql: SELECT * FROM nowhere}]", "rules.query", "nowhere"),
        ("gates: {metrics: {m: {sql: sales + 1, falls: 1%}}}", "rules.condition", "'m'"),
    ],
)
def test_what_a_rule_cannot_be_asked_is_a_finding_of_the_plan(shop: Shop, rules: str, code: str, says: str) -> None:
    declare(shop, rules)
    plan = shop.open().plan(shop.request())
    (finding,) = [each for each in plan.manifest.findings if each.code.startswith("rules.")]
    assert plan.refused
    assert finding.code == code
    assert says in finding.reason


def test_code_of_a_rule_that_is_not_there_stops_the_plan(shop: Shop) -> None:
    declare(shop, "rules: [{python: checks:positiv}]")
    write_code(shop)
    with pytest.raises(ConfigError, match="did you mean positive"):
        shop.open().plan(shop.request())
    file = shop.root / "backcast.yaml"
    file.write_text(file.read_text().replace("python: checks:positiv", "great_expectations: nothing.json"))
    (shop.root / "nothing.json").write_text('{"expectations": []}')
    with pytest.raises(ConfigError, match=r"expected a suite with `expectations` in nothing\.json"):
        load_rules(load_project(shop.root), "revenue")


@both
def test_a_column_that_is_younger_than_the_base_was_empty_there(shop: Shop) -> None:
    """Iceberg shows a version with the columns of its time, and a new column makes no version."""
    shop.spark.sql(f"ALTER TABLE {shop.revenue} ADD COLUMN margin DECIMAL(30,2)")
    code = shop.root / "pipelines" / "revenue.py"
    code.write_text(code.read_text().replace(".agg(", '.agg(F.sum("amount").cast("decimal(30,2)").alias("margin"), '))
    declare(
        shop,
        "rules:\n  - sum: {column: margin, tolerance: 0%}\n  - sql: SELECT * FROM base WHERE margin IS NOT NULL\n"
        "gates: {metrics: {margin: {sql: sum(margin), rises: 1%}}}",
    )
    control, run_id, verdict = verdict_of(shop)
    assert verdict.outcome is Outcome.ACCEPTED, verdict.checks
    found = control.diff(run_id)
    assert found.columns_changed.sentences() == []
    assert {each.name: each.changed for each in found.columns} == {"revenue": 8, "margin": 8}
    control.publish(run_id)
    assert control.diff(run_id).rows == found.rows
    control.undo(run_id)


def test_only_its_own_types_fit_a_table_that_asks_for_them(shop: Shop) -> None:
    declare(shop, "compatibility: exact")
    plan = shop.open().plan(shop.request())
    assert [each.code for each in plan.manifest.findings if each.code.startswith("schema.")] == ["schema.not-exact"]
    code = shop.root / "pipelines" / "revenue.py"
    loose = code.read_text()
    summed = 'F.sum(F.col("amount") * F.col("quantity"))'
    code.write_text(loose.replace(summed, f'{summed}.cast("decimal(30,2)")'))
    assert not shop.open().plan(shop.request()).refused
    code.write_text(loose)
    (shop.root / "backcast.yaml").write_text((shop.root / "backcast.yaml").read_text().replace("exact", "widen"))
    assert not shop.open().plan(shop.request()).refused


@both
def test_what_readers_see_after_a_publish_is_held_to_the_same_rules(shop: Shop) -> None:
    """Keys also against rows around the scope that came after its base."""
    declare(shop, "rules:\n  - range: {column: revenue, max: 1000}\n  - unique: [shop]")
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day <> '2026-01-04'")
    control, run_id, _ = verdict_of(shop, "2026-01-04", "2026-01-05")
    control.publish(run_id)

    def failing() -> set[str]:
        seen = control.watch(run_id, once=True).newest
        assert seen is not None
        return {each.name for each in seen.checks if not each.passed}

    assert failing() == set()
    shop.live("2026-02-04", shop="S1")
    assert failing() == {"unique shop"}
    shop.live("2026-01-04", shop="LIVE", revenue="1001.00")
    assert failing() == {"unique shop", "range revenue"}
