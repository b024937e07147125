"""Schemas of pandera and suites of Great Expectations as rules. Their messages may hold values: none is kept."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from backcast.errors import ConfigError, InvalidRequest
from backcast.model.rule import Rule
from backcast.model.words import many
from backcast.ports.rules import Complaint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_INSTALL = "pip install 'backcast[rules]'"
_MOST_NAMED = 5


@contextmanager
def _quiet() -> Iterator[None]:
    """Both warn about what is no business of a run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def pandera(rule: Rule, schema: Any, rows: DataFrame) -> Complaint:
    """A `DataFrameSchema` or `DataFrameModel` of pandera.pyspark."""
    with _quiet():
        try:
            import pandera.pyspark as pa
        except ImportError as error:
            raise InvalidRequest(f"rule {rule.name!r} needs pandera", hint=_INSTALL) from error
        model = isinstance(schema, type) and issubclass(schema, pa.DataFrameModel)
        if not model and not isinstance(schema, pa.DataFrameSchema):
            raise ConfigError(f"rule {rule.name!r}: expected a schema or model of pandera.pyspark in {rule.reference}")
        from pandera.config import config_context

        # What the environment says about pandera may be meant for other programs: a rule is never left out.
        with config_context(validation_enabled=True, validation_depth="SCHEMA_AND_DATA"):
            found = schema.validate(check_obj=rows).pandera.errors
    problems = [
        f"{problem.get('column') or 'schema'}: {problem.get('check') or reason.lower()}"
        for kinds in found.values()
        for reason, entries in kinds.items()
        for problem in entries
    ]
    return _complaint(rule, problems, "check")


def great_expectations(rule: Rule, suite: Any, rows: DataFrame) -> Complaint:
    """An `ExpectationSuite`, or the JSON that one is stored as."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    with _quiet():
        try:
            import great_expectations as gx
            from great_expectations.data_context.types.base import ProgressBarsConfig
        except ImportError as error:
            raise InvalidRequest(f"rule {rule.name!r} needs great_expectations", hint=_INSTALL) from error
        wanted = _suite(rule, suite, gx)
        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = ProgressBarsConfig(globally=False)
        source = context.data_sources.add_spark("stage", persist=False)
        whole = source.add_dataframe_asset("rows").add_batch_definition_whole_dataframe("rows")
        found = whole.get_batch({"dataframe": rows}).validate(wanted, result_format="BASIC")
    problems, failing = [], 0
    for each in found.results:
        if each.success:
            continue
        config, numbers = each.expectation_config, each.result or {}
        failing += int(numbers.get("unexpected_count") or 0)
        column = config.kwargs.get("column") or ", ".join(config.kwargs.get("column_list", ()))
        raised = any(told.get("raised_exception") for told in _told(each.exception_info))
        problems.append(f"{column or 'table'}: {config.type}{' could not be judged' if raised else ''}")
    return _complaint(rule, problems, "expectation", failing or None)


def _suite(rule: Rule, suite: Any, gx: Any) -> Any:
    if isinstance(suite, gx.ExpectationSuite):
        if not suite.expectations:
            raise ConfigError(f"rule {rule.name!r}: the suite in {rule.reference} expects nothing")
        return suite
    check_suite(rule, suite)
    expectations = [
        {"type": each.get("type") or each.get("expectation_type"), "kwargs": each.get("kwargs", {})}
        for each in suite["expectations"]
    ]
    return gx.ExpectationSuite(name=str(suite.get("name") or rule.name), expectations=expectations)


def check_suite(rule: Rule, suite: Any) -> None:
    """Raises ConfigError for what is no suite as JSON, or one that expects nothing."""
    expected = suite.get("expectations") if isinstance(suite, dict) else None
    if not isinstance(expected, list) or not expected or not all(isinstance(each, dict) for each in expected):
        raise ConfigError(f"rule {rule.name!r}: expected a suite with `expectations` in {rule.reference}")


def _told(information: Any) -> list[dict[str, Any]]:
    """What an expectation says about errors: one answer, or one for each number that it needed."""
    if not isinstance(information, dict):
        return []
    nested = [each for each in information.values() if isinstance(each, dict)]
    return nested or [information]


def _complaint(rule: Rule, problems: list[str], noun: str, failing: int | None = None) -> Complaint:
    if not problems:
        return Complaint(None, f"every {noun} of {rule.reference} holds", passed=True)
    named = "; ".join(problems[:_MOST_NAMED]) + (" ..." if len(problems) > _MOST_NAMED else "")
    return Complaint(failing, f"{many(len(problems), noun)} failed: {named}")
