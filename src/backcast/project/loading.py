"""The user's transforms, loaded: functions of modules and SQL files, whose errors name the line they come from."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backcast.errors import BackcastError, ChunkFailed, ConfigError, InvalidRequest, SparkFailed
from backcast.project.archives import archive_transform, archived_source
from backcast.project.modules import ProjectModules, hashes
from backcast.project.problems import suggestion
from backcast.project.transform import Context, Inputs, TransformFunction, transform_label
from backcast.spark.shipping import ship

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.pipeline import Job
    from backcast.project.config import Project

_FIX = "correct the transform, then plan again"


@dataclass(frozen=True, slots=True)
class LoadedTransform:
    """User code that can be applied. `files` are the project files it consists of, with their SHA-256."""

    pipeline: str
    reference: str
    version: str
    root: Path
    files: Mapping[str, str]
    body: TransformFunction = field(repr=False)

    def apply(self, inputs: Mapping[str, DataFrame], job: Job) -> DataFrame:
        """The transform's result. Raises ChunkFailed when it raises or returns something else than a DataFrame."""
        result = self._result(inputs, job)
        if result.isStreaming:
            raise ChunkFailed(f"{self.reference} returned a stream instead of a batch DataFrame", hint=_FIX)
        return result

    def streamed(self, inputs: Mapping[str, DataFrame], job: Job) -> DataFrame:
        """The same over inputs of which one is a stream: so is its result."""
        result = self._result(inputs, job)
        if not result.isStreaming:
            raise ChunkFailed(f"{self.reference} makes no stream of its topic", hint=_FIX)
        return result

    def _result(self, inputs: Mapping[str, DataFrame], job: Job) -> DataFrame:
        from pyspark.sql import DataFrame, SparkSession

        spark = next((frame.sparkSession for frame in inputs.values()), None) or SparkSession.active()
        context = Context(job.run_id, job.execution, job.window, job.clock, spark)
        ship(spark, self.root, self.files)
        try:
            result: object = self.body(Inputs(inputs), context)
        except BackcastError:
            raise
        except Exception as error:
            raise self._failed(error) from error
        if not isinstance(result, DataFrame):
            got = "None; is a `return` missing?" if result is None else type(result).__name__
            raise ChunkFailed(f"{self.reference} must return a DataFrame, got {got}", hint=_FIX, pipeline=self.pipeline)
        return result

    def _failed(self, error: Exception) -> BackcastError:
        from py4j.protocol import Py4JNetworkError

        if isinstance(error, Py4JNetworkError | ConnectionError):
            return SparkFailed(f"Spark went away while {self.reference} was called", pipeline=self.pipeline)
        where = user_line(error, self.root) or self.reference
        return ChunkFailed(f"{where}: {describe(error)}", hint=_FIX, pipeline=self.pipeline, where=where)


def load_transform(project: Project, pipeline: str) -> LoadedTransform:
    """Import the pipeline's function or read its SQL file. Raises ConfigError or InvalidRequest with file and line."""
    if archived_source(project, pipeline) is not None:
        return archive_transform(project, pipeline)
    config = project.pipeline_config(pipeline)
    if config.sql is not None:
        return _load_sql(project, pipeline, config.sql)
    if config.transform is None:
        raise ConfigError(f"pipeline {pipeline!r} has neither transform nor sql")
    return _load_function(project, pipeline, config.transform)


def _load_function(project: Project, pipeline: str, reference: str) -> LoadedTransform:
    module_name, _, name = reference.partition(":")
    place = project.place("pipelines", pipeline, "transform")
    modules = ProjectModules(project.root)
    try:
        module, files = modules.load(module_name)
    except (Exception, SystemExit) as error:
        raise _import_failed(project, pipeline, module_name, error) from error
    if not files:
        text = (
            f"{place}: pipelines.{pipeline}.transform: module {module_name} is not part of the project {project.root}"
        )
        raise ConfigError(text, hint="write a module in the project that imports it, so that its changes are noticed")
    function = getattr(module, name, None)
    if function is None:
        functions = [key for key, each in vars(module).items() if inspect.isfunction(each) and not key.startswith("_")]
        text = f"{place}: pipelines.{pipeline}.transform: {module_name} has no function {name!r}"
        raise ConfigError(text + suggestion(name, functions), key=f"pipelines.{pipeline}.transform")
    _check_function(project, pipeline, reference, function)
    version = project.pipeline_config(pipeline).version
    return LoadedTransform(pipeline, reference, version, project.root, files, function)


def _check_function(project: Project, pipeline: str, reference: str, function: Any) -> None:
    place = project.place("pipelines", pipeline, "transform")
    key = f"pipelines.{pipeline}"
    if not callable(function) or inspect.isclass(function):
        raise ConfigError(f"{place}: {key}.transform: expected {reference} to be a function", key=key)
    try:
        inspect.signature(function).bind(None, None)
    except (TypeError, ValueError):
        text = f"{place}: {key}.transform: expected {reference} to take two arguments, (inputs, ctx)"
        raise ConfigError(text, key=key) from None
    label = transform_label(function)
    declared = project.pipeline_config(pipeline).version
    if label is not None and label.version != declared:
        at = project.place("pipelines", pipeline, "version")
        text = f"{at}: {key}.version: {declared} here, but {label.version} in the decorator of {reference}"
        raise ConfigError(text, hint="a changed transform is a new version in both places", key=f"{key}.version")


def _import_failed(project: Project, pipeline: str, module: str, error: BaseException) -> InvalidRequest:
    """A module that is not there is a problem of the yaml's line; one that raises is a problem of its own line."""
    if isinstance(error, ModuleNotFoundError) and error.name and f"{module}.".startswith(f"{error.name}."):
        place = project.place("pipelines", pipeline, "transform")
        expected = module.replace(".", "/") + ".py"
        text = f"{place}: pipelines.{pipeline}.transform: no module {module}; expected a file {expected} in the project"
        return ConfigError(text, key=f"pipelines.{pipeline}.transform")
    where = user_line(error, project.root) or module
    return InvalidRequest(
        f"{where}: importing {module} failed: {describe(error)}", hint="correct it and repeat", where=where
    )


def user_line(error: BaseException, root: Path) -> str | None:
    """`pipelines/daily.py:12`: the innermost line of the project that the error passed through."""
    if isinstance(error, SyntaxError) and error.filename:
        frames = [(error.filename, error.lineno)]
    else:
        frames = [(each.filename, each.lineno) for each in traceback.extract_tb(error.__traceback__)]
    for name, line in reversed(frames):
        file = Path(name)
        if file.is_absolute() and file.is_relative_to(root) and "site-packages" not in file.parts:
            return f"{file.relative_to(root).as_posix()}:{line}"
    return None


def describe(error: BaseException) -> str:
    """Type and first sentence; Spark's messages go on for pages."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    lines = [line for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _load_sql(project: Project, pipeline: str, name: str) -> LoadedTransform:
    from backcast.project.sql import SqlBody

    place = project.place("pipelines", pipeline, "sql")
    prefix = f"{place}: pipelines.{pipeline}.sql"
    file = (project.root / name).resolve()
    if not file.is_relative_to(project.root):
        raise ConfigError(
            f"{prefix}: expected a file inside the project, got {name!r}", key=f"pipelines.{pipeline}.sql"
        )
    try:
        text = file.read_text(encoding="utf-8")
        files = hashes(project.root, {file})
    except FileNotFoundError:
        raise ConfigError(f"{prefix}: there is no file {name}", key=f"pipelines.{pipeline}.sql") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{prefix}: {name} cannot be read as text: {describe(error)}") from None
    version = project.pipeline_config(pipeline).version
    return LoadedTransform(pipeline, name, version, project.root, files, SqlBody(name, text))
