"""What a plan notices before anything runs: findings with their severity, what survives, and how long it takes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from backcast.model.analysis import Analysis
from backcast.model.finding import Finding, Severity
from backcast.model.inputs import survival
from backcast.model.manifest import InputPin, LivePolicy, Settings, Survival
from backcast.model.pipeline import Dataset
from backcast.model.request import Request
from backcast.model.rule import Gates, Metric, Per, Rule, RuleKind
from backcast.model.scope import ValueClause
from backcast.model.table import (
    SMALL_FILE,
    FileList,
    FileRef,
    NetChange,
    PublishMode,
    TableFacts,
    TableIdentity,
)
from backcast.model.time import Grain
from backcast.model.verdict import Consequence
from backcast.plan.estimate import Amounts, Rate, estimate
from backcast.plan.pins import at_risk
from backcast.plan.preflight import (
    code_findings,
    gc_findings,
    input_findings,
    pinning_findings,
    policy_findings,
    schema_findings,
    table_findings,
)
from backcast.plan.rule_findings import rule_findings, uncounted_findings
from backcast.testing.samples import DAY_COLUMN, sample_identity, sample_manifest
from backcast.validate.checks import small_files_check

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DATASET = Dataset(name="orders", table="lake.db.orders", time=DAY_COLUMN, grain=Grain.DAY)
MANIFEST = sample_manifest()


def facts(identity: TableIdentity | None = None, **changes: object) -> TableFacts:
    values: dict[str, object] = {
        "identity": identity or sample_identity("lake.db.orders"),
        "version": "7",
        "committed_at": NOW,
        "survives_until": NOW + timedelta(days=5),
        "referenced": False,
        "properties": {},
    }
    return TableFacts(**(values | changes))


def files(number: int, size: int) -> FileList:
    return FileList("7", tuple(FileRef(f"f{each}", "day=2025-01-01", 1, size) for each in range(number)))


def codes(found: list[Finding]) -> dict[str, Severity]:
    return {each.code: each.severity for each in found}


def about_table(dataset: Dataset = DATASET, request: Request | None = None, **changes: object) -> dict[str, Severity]:
    wanted = changes.pop("files", FileList("7", ()))
    assert isinstance(wanted, FileList)
    return codes(table_findings(dataset, facts(**changes), wanted, request or Request(pipeline="p")))


def test_a_table_that_fits_its_dataset_has_no_finding() -> None:
    assert about_table(files=files(3, 100)) == {}


def test_columns_that_are_not_there_block_whoever_names_them() -> None:
    dataset = Dataset(name="o", table="t", time=DAY_COLUMN, grain=Grain.DAY, key=("nope",), version="seq")
    request = Request(pipeline="p", where=(ValueClause(column="tenant", values=("x",)),))
    found = table_findings(dataset, facts(), FileList("7", ()), request)
    assert codes(found) == {"target.unknown-column": Severity.BLOCK}
    assert [name for each in found for name in ("'nope'", "'seq'", "'tenant'") if name in each.reason] == [
        "'nope'",
        "'seq'",
        "'tenant'",
    ]


def test_a_table_without_partitions_is_a_risk() -> None:
    identity = sample_identity("lake.db.orders").model_copy(update={"partition_fields": ()})
    assert about_table(identity=identity) == {"target.unpartitioned": Severity.WARN}


def test_many_small_files_are_worth_knowing_and_a_few_are_not() -> None:
    assert about_table(files=files(21, 1000)) == {"target.small-files": Severity.NOTE}
    assert about_table(files=files(20, 1000)) == {}
    assert about_table(files=files(21, 9 * 1024**2)) == {}


def test_files_that_a_run_staged_are_many_and_small_only_beyond_one_for_each_partition() -> None:
    """So many readers would open. No transform can do better with few rows in each of many partitions."""

    def staged(partitions: int, each: int, size: int = 1000) -> NetChange:
        added = tuple(
            FileRef(f"/{day}/{number}", f"day={day}", 1, size) for day in range(partitions) for number in range(each)
        )
        return NetChange(base="1", staged="2", added=added, removed=(), outside=(), superseded=())

    (found,) = small_files_check(staged(2, 12))
    assert (found.passed, found.consequence) == (False, Consequence.WARN), "it is told, and stops nothing"
    assert "24 of 24 staged files are smaller than 8 MiB, in 2 partitions" in found.detail
    assert small_files_check(staged(100, 1)) == []
    assert small_files_check(staged(2, 11)) == []
    assert small_files_check(staged(2, 12, SMALL_FILE)) == []


def test_runs_that_gc_left_for_days_say_that_nobody_runs_it() -> None:
    (found,) = gc_findings("lake.db.orders", ("r1", "r2"))
    assert (found.code, found.severity) == ("target.gc-overdue", Severity.WARN)
    assert "2 runs on lake.db.orders" in found.reason
    assert gc_findings("lake.db.orders", ()) == []


def test_declared_streams_that_read_the_table_are_named() -> None:
    dataset = Dataset(name="o", table="t", time=DAY_COLUMN, grain=Grain.DAY, streaming_readers=("alerts",))
    (found,) = table_findings(dataset, facts(), FileList("7", ()), Request(pipeline="p"))
    assert (found.code, found.severity) == ("target.streaming-readers", Severity.WARN)
    assert "alerts" in found.reason
    assert "skipChangeCommits" in found.remedy


def pin(**changes: object) -> InputPin:
    return MANIFEST.inputs[0].model_copy(update=changes)


def test_a_window_outside_the_data_would_empty_the_scope() -> None:
    assert codes(input_findings([pin(rows=0)], "t")) == {"input.empty": Severity.WARN}
    assert codes(input_findings([pin(rows=0), pin(rows=1)], "t")) == {}
    assert codes(input_findings([pin(rows=0, windowed=False)], "t")) == {}


def test_an_input_that_is_the_target_is_named() -> None:
    assert codes(input_findings([pin()], "lake.db.events")) == {"input.self": Severity.NOTE}


@pytest.mark.parametrize(
    ("kind", "remedy"),
    [
        ("iceberg", "ALTER TABLE lake.db.events CREATE TAG keep_7 AS OF VERSION 7"),
        ("delta", "raise delta.deletedFileRetentionDuration of lake.db.events"),
    ],
)
def test_an_input_at_risk_is_kept_by_what_its_format_has(kind: str, remedy: str) -> None:
    identity = sample_identity("lake.db.events").model_copy(update={"format": kind})
    risky = pin(identity=identity, version="7", survival=Survival.AT_RISK, survives_until=NOW)
    (finding,) = input_findings([risky], "t")
    assert (finding.code, finding.severity) == ("input.at-risk", Severity.WARN)
    assert finding.remedy.startswith(remedy)


def test_an_input_survives_until_its_owners_expiry_unless_a_ref_keeps_it() -> None:
    soon, day = facts(survives_until=NOW + timedelta(hours=1)), timedelta(days=1)
    assert survival(facts(), NOW, day) is Survival.OK
    assert survival(soon, NOW, day) is Survival.AT_RISK
    assert survival(facts(survives_until=NOW, referenced=True), NOW, day) is Survival.OK
    assert survival(facts(survives_until=None), NOW, day) is Survival.UNKNOWN
    assert survival(facts(version=None, survives_until=None), NOW, day) is Survival.OK


def test_a_run_that_may_outlive_its_input_puts_it_at_risk() -> None:
    kept = pin(survives_until=NOW + timedelta(hours=1))
    assert at_risk(kept, NOW, 3_599).survival is Survival.OK
    assert at_risk(kept, NOW, 3_600).survival is Survival.AT_RISK


def test_code_that_no_commit_names_is_a_risk() -> None:
    request = Request(pipeline="p", reason="why")
    dirty = MANIFEST.code.model_copy(update={"git_commit": "c", "git_dirty": tuple(f"{n}.py" for n in range(6))})
    (found,) = code_findings(dirty, request)
    assert (found.code, found.severity) == ("code.dirty", Severity.WARN)
    assert found.reason == "not committed in git: 0.py, 1.py, 2.py, 3.py, 4.py and others"
    clean = MANIFEST.code.model_copy(update={"git_commit": "c"})
    assert codes(code_findings(clean, request)) == {}
    assert codes(code_findings(clean, Request(pipeline="p"))) == {"request.no-reason": Severity.NOTE}


def test_what_is_not_repeatable_blocks_unless_declared_and_what_may_not_be_is_told() -> None:
    columns = MANIFEST.target.identity.columns
    analysis = Analysis(columns, nondeterministic=("rand",), order_dependent=("first",), opaque=("score",))
    found = codes(schema_findings(analysis, columns, Settings(), frozenset()))
    warned = {"code.order-dependent": Severity.WARN, "code.python-functions": Severity.NOTE}
    assert found == {"code.nondeterministic": Severity.BLOCK, **warned}
    declared = Settings(allow_nondeterministic=("rand",))
    assert codes(schema_findings(analysis, columns, declared, frozenset())) == warned


def test_files_that_the_transform_reads_by_itself_are_a_risk_and_tables_block() -> None:
    columns = MANIFEST.target.identity.columns
    assert codes(pinning_findings(Analysis(columns, files=True), [pin()])) == {"input.files": Severity.WARN}
    loose = Analysis(columns, tables=("lake.db.events",), unpinned=("lake.db.events",))
    assert codes(pinning_findings(loose, [pin()])) == {"input.undeclared": Severity.BLOCK}
    assert codes(pinning_findings(loose, [pin(version=None)])) == {}


def test_rows_of_an_input_that_is_read_whole_are_counted_for_the_scope_alone() -> None:
    counts = Rule(kind=RuleKind.ROWS, name="r", input=pin().name, per=Per.PARTITION)
    for whole, per in ((True, Per.PARTITION), (True, Per.SCOPE), (False, Per.PARTITION)):
        settings = Settings(rules=(counts.model_copy(update={"per": per}),))
        found = codes(rule_findings(settings, MANIFEST.target.identity.columns, [pin(windowed=not whole)]))
        assert found == ({"rules.no-time": Severity.BLOCK} if whole and per is Per.PARTITION else {})


def test_rows_are_not_held_against_an_input_of_which_the_scope_is_a_part() -> None:
    """All tenants' rows beside one tenant's: the run was rejected whatever it had computed."""
    counts = Rule(kind=RuleKind.ROWS, name="r", input=pin().name)
    complete = Rule(kind=RuleKind.NOT_NULL, name="complete", columns=("id",))
    settings, scope = Settings(rules=(counts, complete)), MANIFEST.scope
    part = scope.model_copy(
        update={"predicate": scope.predicate.and_values((ValueClause(column="tenant", values=("T-41",)),))}
    )
    for asked, left_out in ((scope, False), (part, True)):
        found = codes(uncounted_findings(settings, asked, None))
        assert found == ({"rules.not-counted": Severity.WARN} if left_out else {})
        judged = MANIFEST.model_copy(update={"settings": settings, "scope": asked}).rules
        assert judged == ((complete,) if left_out else (counts, complete))


def test_keep_needs_a_key() -> None:
    settings = Settings(live_policy=LivePolicy.KEEP)
    assert codes(policy_findings(settings, MANIFEST.scope)) == {"policy.keep-needs-key": Severity.BLOCK}
    assert policy_findings(settings.model_copy(update={"key": ("id",)}), MANIFEST.scope) == []


@pytest.mark.parametrize("mode", [PublishMode.MERGE, PublishMode.APPEND, PublishMode.REPLACE])
def test_partitions_are_asked_for_only_where_there_are_some(mode: PublishMode) -> None:
    """A merge changes all of its one part, so a gate on parts would trip for ever."""
    by_part = Rule(kind=RuleKind.NOT_NULL, name="complete", columns=("id",), per=Per.PARTITION)
    settings = Settings(publish_mode=mode, rules=(by_part,))
    columns = MANIFEST.target.identity.columns
    expected = {} if mode is PublishMode.REPLACE else {"rules.one-part": Severity.WARN}
    assert codes([each for each in rule_findings(settings, columns, ()) if each.code == "rules.one-part"]) == expected
    for gates in (
        Gates(changed_partitions=0.9),
        Gates(metrics=(Metric(name="rows", sql="count(*)", falls=0.5, per=Per.PARTITION),)),
    ):
        asked = settings.model_copy(update={"gates": gates, "rules": ()})
        blocks = [each.code for each in rule_findings(asked, columns, ()) if each.severity is Severity.BLOCK]
        told = {PublishMode.MERGE: ["rules.one-part"], PublishMode.APPEND: ["rules.no-base"], PublishMode.REPLACE: []}
        assert blocks == told[mode]
    whole = settings.model_copy(update={"gates": Gates(changed_rows=0.5), "rules": ()})
    assert mode is PublishMode.APPEND or rule_findings(whole, columns, ()) == []


def test_a_masked_column_must_be_one_of_the_table_in_whatever_case() -> None:
    columns = MANIFEST.target.identity.columns
    assert rule_findings(Settings(masked=(columns[0].name.upper(),)), columns, ()) == []
    assert codes(rule_findings(Settings(masked=("emial",)), columns, ())) == {"rules.unknown-column": Severity.BLOCK}


def test_an_estimate_says_whether_it_is_measured_or_guessed() -> None:
    guess = estimate(Amounts(3_000_000, 1, 0), None)
    assert (guess.seconds_low, guess.seconds_high, guess.output_rows) == (11, 130, 3_000_000)
    assert "guessed" in guess.basis
    measured = estimate(Amounts(3_000_000, 1, 1_000), Rate(slow=10, fast=100, jobs=1))
    assert (measured.seconds_low, measured.seconds_high, measured.output_rows) == (15, 130, 1_000)
    assert measured.basis == "1 recorded job of this pipeline"
