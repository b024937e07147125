"""Rules that are the user's own: queries, Python functions, pandera schemas, Great Expectations suites."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from backcast.errors import BackcastError, ChunkFailed, ConfigError, InvalidRequest, SparkFailed
from backcast.model.rule import CUSTOM, Rule, RuleKind
from backcast.ports.rules import Complaint, RuleFrames
from backcast.project.loading import describe, user_line
from backcast.project.modules import ProjectModules, hashes
from backcast.project.problems import suggestion
from backcast.project.rule_adapters import check_suite
from backcast.project.sql import one_query
from backcast.project.transform import Context
from backcast.spark.shipping import ship

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.project.config import Project

_FIX = "correct the rule, then plan again"


@dataclass(frozen=True, slots=True)
class LoadedRules:
    """The port RuleCode over one pipeline's rules. `files` are the project files that they consist of, by SHA-256."""

    project: Project
    files: Mapping[str, str]
    bodies: Mapping[str, Any] = field(repr=False)
    """Functions, schemas and suites by reference."""

    def apply(self, rule: Rule, frames: RuleFrames) -> DataFrame | Complaint:
        from backcast.project import rule_adapters

        body = self.bodies.get(rule.reference or "")
        ship(frames.stage.sparkSession, self.project.root, self.files)
        try:
            match rule.kind:
                case RuleKind.SQL:
                    return _query(rule, frames)
                case RuleKind.PYTHON:
                    return _function(rule, body, frames)
                case RuleKind.PANDERA:
                    return rule_adapters.pandera(rule, body, frames.stage)
                case _:
                    return rule_adapters.great_expectations(rule, body, frames.stage)
        except BackcastError:
            raise
        except Exception as error:
            raise self._failed(rule, error) from error

    def _failed(self, rule: Rule, error: Exception) -> BackcastError:
        from py4j.protocol import Py4JNetworkError

        if isinstance(error, Py4JNetworkError | ConnectionError):
            return SparkFailed(f"Spark went away while rule {rule.name!r} was judged")
        where = user_line(error, self.project.root) or rule.reference or "its query"
        return ChunkFailed(f"{where}: {describe(error)}", hint=_FIX, rule=rule.name)


def load_rules(project: Project, pipeline: str) -> LoadedRules:
    """Import what the pipeline's rules refer to. Raises ConfigError or InvalidRequest, with the rule's name."""
    from backcast.project.archives import archived_source

    files: dict[str, str] = {}
    bodies: dict[str, Any] = {}
    rules = () if archived_source(project, pipeline) is not None else project.pipeline(pipeline).settings.rules
    for rule in rules:
        if rule.kind not in CUSTOM or rule.reference is None or rule.reference in bodies:
            continue
        body, found = _load_file(project, rule) if ":" not in rule.reference else _load_object(project, rule)
        bodies[rule.reference] = body
        files |= found
    return LoadedRules(project, files, bodies)


def _load_file(project: Project, rule: Rule) -> tuple[Any, dict[str, str]]:
    import json

    file = (project.root / str(rule.reference)).resolve()
    if not file.is_relative_to(project.root) or not file.is_file():
        raise ConfigError(f"rule {rule.name!r}: there is no file {rule.reference} in the project", hint=_FIX)
    try:
        suite = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ConfigError(f"rule {rule.name!r}: {rule.reference} is no JSON: {error}", hint=_FIX) from None
    check_suite(rule, suite)
    return suite, hashes(project.root, {file})


def _load_object(project: Project, rule: Rule) -> tuple[Any, dict[str, str]]:
    module_name, _, name = str(rule.reference).partition(":")
    prefix = f"rule {rule.name!r}"
    try:
        module, files = ProjectModules(project.root).load(module_name)
    except (Exception, SystemExit) as error:
        where = user_line(error, project.root) or module_name
        raise InvalidRequest(f"{prefix}: {where}: importing {module_name} failed: {describe(error)}") from error
    if not files:
        raise ConfigError(f"{prefix}: module {module_name} is not part of the project", hint=_FIX)
    body = getattr(module, name, None)
    if body is None:
        known = [key for key in vars(module) if not key.startswith("_")]
        raise ConfigError(f"{prefix}: {module_name} has no {name!r}{suggestion(name, known)}", hint=_FIX)
    if rule.kind is RuleKind.PYTHON:
        _check_signature(prefix, rule, body)
    return body, files


def _check_signature(prefix: str, rule: Rule, body: Any) -> None:
    try:
        inspect.signature(body).bind(None, None, None)
    except (TypeError, ValueError):
        text = f"{prefix}: expected {rule.reference} to be a function of three arguments, (stage, base, ctx)"
        raise ConfigError(text, hint=_FIX) from None


def _context(frames: RuleFrames) -> Context:
    job = frames.job
    return Context(job.run_id, job.execution, job.window, job.clock, frames.stage.sparkSession)


def _query(rule: Rule, frames: RuleFrames) -> DataFrame:
    """The rows that the query returns. In brackets Spark takes nothing but a query."""
    from backcast.spark.views import as_views

    ctx = _context(frames)
    text = one_query(f"rule {rule.name!r}", rule.query or "")
    arguments = {"window_start": ctx.window.start, "window_end": ctx.window.end, "clock": ctx.clock()}
    with as_views(ctx.spark, {**frames.inputs, "stage": frames.stage, "base": frames.base}):
        return ctx.spark.sql(f"SELECT * FROM ({text}\n)", args=arguments)  # noqa: S608 - the user's own query


def _function(rule: Rule, body: Any, frames: RuleFrames) -> DataFrame:
    """The rows for which the function's condition is not true, or the rows that it returns."""
    from pyspark.sql import Column, DataFrame
    from pyspark.sql import functions as F

    found = body(frames.stage, frames.base, _context(frames))
    if isinstance(found, Column):
        # Unknown is not true: a condition that must hold for nulls, too, has to say so.
        return frames.stage.where(~F.coalesce(found, F.lit(False)))
    if isinstance(found, DataFrame):
        return found
    got = type(found).__name__
    text = f"{rule.reference} must return a condition (Column) or the failing rows (DataFrame), got {got}"
    raise ChunkFailed(text, hint=_FIX)
