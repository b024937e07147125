"""Suites of others as rules: what expects nothing is no rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from backcast.errors import ConfigError
from backcast.model.rule import Rule, RuleKind
from backcast.project.rule_adapters import great_expectations

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def test_a_suite_object_that_expects_nothing_is_refused_before_any_row_is_looked_at() -> None:
    gx = pytest.importorskip("great_expectations")
    rule = Rule(kind=RuleKind.GREAT_EXPECTATIONS, name="daily", reference="checks:suite")
    with pytest.raises(ConfigError, match="the suite in checks:suite expects nothing"):
        great_expectations(rule, gx.ExpectationSuite(name="daily", expectations=[]), cast("DataFrame", None))
