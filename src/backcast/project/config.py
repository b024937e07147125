"""Reading a project: `backcast.yaml`, the chosen profile and the environment, checked as a whole."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from backcast.errors import ConfigError, InvalidRequest, UnknownName
from backcast.model.calendar import Calendar
from backcast.model.diff import DiffRules
from backcast.model.manifest import Settings
from backcast.model.pipeline import Dataset, PipelineSpec, Relation, TableFormat
from backcast.model.source import KafkaAccess, LogSource
from backcast.model.stream import StreamSpec
from backcast.model.table import PublishMode
from backcast.project.archives import archive_dataset, archive_pipeline, archived_source
from backcast.project.problems import KeyPath, Place, Problem, from_validation, raise_problems, suggestion
from backcast.project.profiles import Interpolation, apply_environment, choose_profile
from backcast.project.references import reference_problems
from backcast.project.rule_schema import rules_of
from backcast.project.schema import DatasetConfig, PipelineConfig, ProjectConfig, keys_at
from backcast.project.secrets import is_secret_path
from backcast.project.sources import kafka_access, log_source
from backcast.project.store_address import filled, password_problems
from backcast.project.stream_schema import shared_checkpoints
from backcast.project.yaml_lines import Tree, read_yaml

FILE_NAME = "backcast.yaml"
PROFILE_VARIABLE = "BACKCAST_PROFILE"


@dataclass(frozen=True, slots=True)
class Project:
    """A project whose declarations are complete and agree with each other. Nothing is opened or imported yet."""

    root: Path
    file: Path
    profile: str | None
    config: ProjectConfig
    interpolation: Interpolation
    places: Mapping[KeyPath, Place] = field(repr=False)

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def store_path(self) -> Path | None:
        """The store's file; None when it is on a server. Raises ConfigError for unset variables."""
        text = filled(self)
        return None if "://" in text else self.root / Path(text).expanduser()

    def place(self, *path: str) -> Place:
        """Where a key was written, for messages about what it names."""
        return Tree(None, self.places).place(path)

    def relation(self, name: str) -> Relation:
        """A declared table, with its time column when it has one, or an archive. Raises UnknownName."""
        archived = archived_source(self, name)
        if archived is not None:
            return archive_dataset(archived)
        if name not in self.config.datasets:
            raise _unknown("dataset", name, self.config.datasets)
        return _relation(name, self)

    def diff_rules(self, name: str) -> DiffRules:
        """How rows of a declared table are compared; an archive's as they are. Raises UnknownName."""
        relation = self.relation(name)
        config = self.config.datasets.get(name)
        if config is None:
            return DiffRules(key=relation.key if isinstance(relation, Dataset) else ())
        return DiffRules(key=config.key, tolerance=config.diff.tolerances(), masked=frozenset(config.masked))

    def log_source(self, name: str) -> LogSource:
        """A declared topic. Raises UnknownName."""
        if name not in self.config.sources:
            raise _unknown("source", name, self.config.sources)
        return log_source(self, name)

    def kafka_access(self, name: str) -> KafkaAccess:
        """How to reach the topic's brokers, secrets included. Raises ConfigError for unset variables."""
        return kafka_access(self, self.log_source(name).name)

    def input(self, name: str) -> Relation | LogSource:
        """What a pipeline may read: a declared dataset or source. Raises UnknownName."""
        return self.log_source(name) if name in self.config.sources else self.relation(name)

    def dataset(self, name: str) -> Dataset:
        """Raises UnknownName, and InvalidRequest for a table without a time column."""
        relation = self.relation(name)
        if not isinstance(relation, Dataset):
            raise InvalidRequest(f"dataset {name!r} has no time column", hint=f"add `time` to datasets.{name}")
        return relation

    def stream(self, name: str) -> StreamSpec:
        """A declared stream. Raises UnknownName, and InvalidRequest for a pipeline that cannot be streamed."""
        if name not in self.config.streams:
            raise _unknown("stream", name, self.config.streams)
        config = self.config.streams[name]
        return config.resolve(name, self.root, self.pipeline(config.pipeline))

    def _streams_into(self, table: str) -> tuple[str, ...]:
        """Streams that write to the table. Those of others are looked at by their checkpoints."""
        outputs = {name: config.output for name, config in self.config.pipelines.items()}
        return tuple(
            name
            for name, config in self.config.streams.items()
            if config.pipeline in outputs and self.dataset(outputs[config.pipeline]).table == table
        )

    def pipeline_config(self, name: str) -> PipelineConfig:
        if name not in self.config.pipelines:
            raise _unknown("pipeline", name, self.config.pipelines)
        return self.config.pipelines[name]

    def pipeline(self, name: str) -> PipelineSpec:
        """The pipeline as the flow knows it, declared or that of an archive. Raises UnknownName."""
        archived = archived_source(self, name)
        if archived is not None:
            return archive_pipeline(archived)
        config = self.pipeline_config(name)
        output, declared = self.dataset(config.output), self.config.datasets[config.output]
        return PipelineSpec(
            name=name,
            version=config.version,
            inputs=tuple(
                each.spec(key, self.input(each.dataset), output.time.zone) for key, each in config.inputs.items()
            ),
            output=output,
            warm_up_before=config.warm_up.before,
            warm_up_after=config.warm_up.after,
            cut=config.cut,
            settings=Settings(
                publish_mode=config.publish.mode,
                live_policy=config.publish.live,
                undo_window_seconds=int(config.publish.undo_window.total_seconds()),
                chunks_per_job=config.chunks_per_job,
                throttle=None
                if config.throttle is None
                else config.throttle.throttle(self._streams_into(output.table), output.time.zone),
                key=output.key,
                version=output.version if config.publish.mode is PublishMode.MERGE else None,
                deletes=config.publish.deletes,
                allow_nondeterministic=config.nondeterministic,
                lineage_columns=config.lineage_columns,
                on_failure=config.validation.on_failure,
                recompute=config.validation.recompute,
                watch_seconds=int(config.publish.watch.total_seconds()),
                rules=rules_of(declared.rules, config.rules),
                gates=declared.gates.gates().joined(config.gates.gates()),
                masked=declared.masked,
                exact_types=declared.compatibility == "exact",
            ),
        )


def load_project(
    path: str | Path = ".", profile: str | None = None, environ: Mapping[str, str] | None = None
) -> Project:
    """The project in this folder or the nearest one above it. Raises ConfigError with every problem found.

    The profile comes from the argument, else from BACKCAST_PROFILE, else none is used.
    """
    environ = os.environ if environ is None else environ
    file = _find(Path(path))
    shown_as = _shown(file)
    written = read_yaml(file, shown_as)
    profile = profile or environ.get(PROFILE_VARIABLE) or None
    chosen = choose_profile(written, profile)
    changed = apply_environment(chosen, environ)
    interpolation = Interpolation(file.parent, environ)
    tree = interpolation.tree(changed, skip=is_secret_path)
    problems = [
        *_profile_problems(written),
        *_policy_problems(chosen, changed),
        *password_problems(str(tree.mapping.get("store", "")), tree),
    ]
    config: ProjectConfig | None = None
    try:
        config = ProjectConfig.model_validate(tree.value)
    except ValidationError as error:
        problems += from_validation(error, tree.place, keys_at, is_secret_path)
    problems += reference_problems(tree, {each.path for each in problems})
    problems += shared_checkpoints(tree, file.parent)
    raise_problems(problems)
    if config is None:
        raise ConfigError(f"{shown_as}: it is not a project", file=shown_as)
    return Project(file.parent, file, profile, config, interpolation, tree.places)


def _find(path: Path) -> Path:
    start = path.expanduser().resolve()
    if start.is_file():
        return start
    if not start.is_dir():
        raise ConfigError(f"there is no folder {path}", hint="name the folder that holds backcast.yaml", file=str(path))
    for folder in (start, *start.parents):
        if (folder / FILE_NAME).exists():
            return folder / FILE_NAME
    hint = f"run `backcast init {path}` to write a small working project"
    raise ConfigError(f"there is no {FILE_NAME} in {start} or above it", hint=hint, file=FILE_NAME)


def _shown(file: Path) -> str:
    """As short as a person in the current folder would write it."""
    relative = os.path.relpath(file)
    return str(file) if relative.startswith("..") else relative


def _unknown(kind: str, name: str, known: Mapping[str, object]) -> UnknownName:
    hint = suggestion(name, known).removeprefix("; ") or f"declare it under {kind}s in {FILE_NAME}"
    return UnknownName(f"no {kind} is called {name!r}", hint=hint, kind=kind, name=name)


def _relation(name: str, project: Project) -> Relation:
    config = project.config.datasets[name]
    table, kind = _table(config, project)
    if config.time is None:
        return Relation(name, table, format=kind)
    return Dataset(
        name=name,
        table=table,
        format=kind,
        time=config.time.resolve(),
        grain=config.grain,
        partition=config.partition.resolve(config.time) if config.partition else None,
        key=config.key,
        version=config.version,
        streaming_readers=config.streaming_readers,
        tolerance=config.tolerance,
        refresh=config.refresh,
        tier=config.tier,
        calendar=Calendar(config.calendar, frozenset(config.closed)),
        position=None if config.position is None else (config.position.partition, config.position.offset),
    )


def _table(config: DatasetConfig, project: Project) -> tuple[str, TableFormat]:
    """The table's name as Spark knows it; a path is taken against the project's folder."""
    if config.table is None:
        path = str(config.path)
        place = path if ":" in path else str(project.root / Path(path).expanduser())
        return f"delta.`{place}`", TableFormat.DELTA
    catalog = project.config.catalogs[config.table.partition(".")[0]]
    return config.table, TableFormat.DELTA if catalog.type == "delta" else TableFormat.ICEBERG


def _policy_problems(chosen: Tree, changed: Tree) -> list[Problem]:
    """Whoever runs a command must not choose what it is held to, neither by the key itself nor by one above it."""
    datasets = changed.mapping.get("datasets")
    tiers: list[KeyPath] = [("datasets", name, "tier") for name in datasets] if isinstance(datasets, dict) else []
    text = "it stands in backcast.yaml, a variable cannot set it"
    return [
        Problem(changed.place(path), path, text)
        for path in (("policy",), *tiers)
        if _at(chosen, path) != _at(changed, path) or (path in changed.places and changed.places[path].line is None)
    ]


def _at(tree: Tree, path: KeyPath) -> Any:
    value: Any = tree.value
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _profile_problems(written: Tree) -> list[Problem]:
    """Unknown sections, in any profile: the chosen one is checked in full, the others at least for this."""
    known = set(ProjectConfig.model_fields)
    problems = []
    for profile, sections in (written.mapping.get("profiles") or {}).items():
        for key in (sections or {}).keys() - known:
            path = ("profiles", profile, key)
            problems.append(Problem(written.place(path), path, f"unknown key{suggestion(key, known)}"))
    return problems
