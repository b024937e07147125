"""Rules and gates in backcast.yaml: what they become, and what is said about mistakes."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

import pytest

from backcast.errors import ConfigError
from backcast.model.layer import Consequence
from backcast.model.rule import Gates, Metric, Per, RuleKind
from backcast.project.identity import config_hash
from backcast.project.rule_schema import GatesConfig, RuleEntry, rules_of
from backcast.project.yaml_lines import parse_yaml
from tests.unit.projects import GOOD, project

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)


def declared(root: Path, dataset: str = "", pipeline: str = "") -> str:
    """GOOD with these keys on the output and on the pipeline."""
    text = GOOD.replace("    key: [day, shop]\n", f"    key: [day, shop]\n{indent(dataset, '    ')}")
    return text + indent(pipeline, "    ")


def test_rules_of_dataset_and_pipeline_come_together_each_with_a_name_of_its_own(tmp_path: Path) -> None:
    dataset = "rules:\n  - not_null: [day, shop]\n  - range: {column: amount, min: 0, severity: warn}\nmasked: [shop]\n"
    pipeline = "rules:\n  - range: {column: amount, max: 9, per: partition, where: 'shop > 1', tolerance: 1%}\n"
    settings = project(tmp_path, declared(tmp_path, dataset, pipeline)).pipeline("daily").settings
    assert [rule.name for rule in settings.rules] == ["not null day, shop", "range amount", "range amount (2)"]
    assert [rule.severity for rule in settings.rules] == [Consequence.BLOCK, Consequence.WARN, Consequence.BLOCK]
    last = settings.rules[-1]
    assert (last.per, last.where, last.maximum, last.tolerance) == (Per.PARTITION, "shop > 1", "9", 0.01)
    assert settings.masked == ("shop",)


def test_of_two_gates_the_stricter_share_counts_and_every_metric(tmp_path: Path) -> None:
    dataset = "gates: {changed_rows: 20%, metrics: {a: {sql: sum(x), falls: 80%}}}\n"
    pipeline = (
        "gates: {changed_rows: 30%, changed_partitions: 5%, metrics: {b: {sql: sum(y), rises: 300%, by: shop}}}\n"
    )
    gates = project(tmp_path, declared(tmp_path, dataset, pipeline)).pipeline("daily").settings.gates
    metrics = (Metric(name="a", sql="sum(x)", falls=0.8), Metric(name="b", sql="sum(y)", rises=3.0, by=("shop",)))
    assert gates == Gates(changed_rows=0.2, changed_partitions=0.05, metrics=metrics)


def test_a_project_without_rules_is_the_same_as_before_there_were_any(tmp_path: Path) -> None:
    """Neither its settings nor the hash of its declarations tell that rules exist."""
    plain = project(tmp_path)
    stored = plain.pipeline("daily").settings.as_json()
    assert not {"rules", "gates", "masked", "exact_types"} & stored.keys()
    assert "rules" not in plain.config.datasets["daily"].as_json()
    before = config_hash(plain, "daily")
    ruled = project(tmp_path, declared(tmp_path, "rules: [{not_null: [day]}]\n"))
    assert config_hash(ruled, "daily") != before


def test_what_rules_and_metrics_have_learned_since_is_not_hashed_where_nobody_asks_for_it(tmp_path: Path) -> None:
    """A run that was planned before would be told that its declarations had changed."""
    gates = "gates: {metrics: {a: {sql: sum(x), falls: 1%}}}"
    ruled = project(tmp_path, declared(tmp_path, f"rules: [{{rows: {{input: events}}}}]\n{gates}\n"))
    stored = ruled.config.datasets["daily"].as_json()
    assert "per" not in stored["rules"][0]["rows"]
    assert "by" not in stored["gates"]["metrics"]["a"]


def test_every_example_of_the_page_is_right_and_every_kind_has_one() -> None:
    kinds = set()
    for block in BLOCKS:
        value = parse_yaml(block, "rules.md").value
        if isinstance(value, list):
            kinds |= {rule.kind for rule in rules_of([RuleEntry.model_validate(each) for each in value])}
        elif isinstance(value, dict) and "gates" in value:
            assert len(GatesConfig.model_validate(value["gates"]).gates().metrics) in (1, 2)
        else:
            assert isinstance(value, dict)
            assert len(value["datasets"]["orders"]["rules"]) == 3
    assert kinds == set(RuleKind)


CASES = [
    ("rules: not_null", "rules", "expected a list such as [a, b], got 'not_null'"),
    ("rules: [not_nul]", "rules[0]", "expected a rule such as `not_null: [id]`, got 'not_nul'; did you mean not_null?"),
    ("rules: [{not_nul: [a]}]", "rules[0].not_nul", "unknown key; did you mean not_null?"),
    ("rules: [{not_null: [a], unique: [b]}]", "rules[0]",
     "expected one rule in each item of the list, such as `- not_null: [id]`"),
    ("rules: [{not_null: }]", "rules[0]", "expected what the rule is about, got nothing"),
    ("rules: [{not_null: ['a b']}]", "rules[0].not_null.columns[0]",
     "expected a name of letters, digits and _, got 'a b'"),
    ("rules: [{not_null: []}]", "rules[0].not_null.columns", "expected at least one entry, got a list"),
    ("rules: [{unique: [a]}, {range: {column: a}}]", "rules[1].range", "expected min, max or both"),
    ("rules: [{range: {column: a, mni: 1}}]", "rules[0].range.mni", "unknown key; did you mean min?"),
    ("rules: [{range: {column: a, min: 1, severity: stop}}]", "rules[0].range.severity",
     "expected one of block, warn, got 'stop'"),
    ("rules: [{rows: {input: events, per: day}}]", "rules[0].rows.per", "expected one of scope, partition, got 'day'"),
    ("rules: [{fresh: {column: a, within: soon}}]", "rules[0].fresh.within",
     "'soon' is not a duration; write for example 90s, 30m, 12h, 7d or 2w"),
    ("rules: [{sum: {column: a}}]", "rules[0].sum.tolerance", "required, and missing"),
    ("rules: [{references: {column: a, dataset: shop, to: id}}]", "rules[0].references.dataset",
     "no dataset is called 'shop'; did you mean shops?"),
    ("rules: [{references: {column: [a, b], dataset: shops, to: id}}]", "rules[0].references",
     "expected as many columns in `to` as in `column`"),
    ("rules: [{python: positive}]", "rules[0].python.code",
     "expected module:name such as checks:positive_margin, got 'positive'"),
    ("rules: [{great_expectations: ../x.json}]", "rules[0].great_expectations.code",
     "expected a .json file of the project or module:name, got '../x.json'"),
    ("gates: {changed_rows: 0.2}", "gates.changed_rows", "expected a share such as 0.1%, got '0.2'"),
    ("gates: {metrics: {m: {sql: sum(x)}}}", "gates.metrics.m", "expected falls, rises or both"),
    ("gates: {change_rows: 1%}", "gates.change_rows", "unknown key; did you mean changed_rows?"),
    ("compatibility: loose", "compatibility", "expected one of widen, exact, got 'loose'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "key", "says"), CASES)
def test_a_mistake_is_told_with_line_key_and_what_was_expected(tmp_path: Path, text: str, key: str, says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        project(tmp_path, declared(tmp_path, f"{text}\n"))
    assert ":11: " in caught.value.message
    assert f": datasets.daily.{key}: {says}" in caught.value.message
