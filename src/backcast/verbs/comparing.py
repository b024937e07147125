"""Verbs that compare versions of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest, StateConflict, UnknownName
from backcast.model.canary import judged, part_of
from backcast.model.diff import Compared, ComparedSide, Diff, DiffRules
from backcast.model.pipeline import Dataset
from backcast.model.scope import Predicate, ValueClause
from backcast.model.stage import recorded_stage, recorded_staged
from backcast.model.states import RunState
from backcast.ports.comparing import Comparing
from backcast.spark.gateway import jvm_errors
from backcast.validate.diff import Staged, rules_of
from backcast.validate.diff import changed_rows as changed_rows_step
from backcast.validate.diff import diff as diff_step
from backcast.verbs.late_in_diff import late_in_diff
from backcast.verbs.masking import require_masked
from backcast.verbs.recording import keep_diff
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.column import TimeColumn
    from backcast.model.time import Grain

Where = Mapping[str, str | Sequence[str]]
"""Columns with the value, or any of the values, that rows must have."""


@dataclass(frozen=True, slots=True)
class _Both:
    """What is compared with what, and how."""

    sides: tuple[ComparedSide, ComparedSide]
    frames: tuple[DataFrame, DataFrame]
    asked: Comparing


class ComparingVerbs(Verbs):
    @jvm_errors("comparing base and stage")
    def diff(self, run_id: str, *, rows: bool = True, samples: int = 10) -> Diff:
        """Base against stage: counts and digests per chunk; columns and rows of those that differ.

        `rows=False` stops after the digests. `samples` is how many rows of each kind are shown.
        """
        staged = self._staged(run_id)
        found = diff_step(staged, self._rules(staged), self.world.comparer(), rows=rows, samples=samples)
        found = found.model_copy(update={"late": late_in_diff(self.world, staged.manifest, found)})
        keep_diff(self.world, found)
        accepted = self.world.reader().run(run_id).state is RunState.ACCEPTED
        return found.model_copy(update={"publishable": accepted})

    @jvm_errors("comparing base and stage")
    def diff_rows(self, run_id: str) -> DataFrame:
        """Every row that differs, as a frame: `_change`, `_chunk`, `_times`, `_columns`, the key, `before`, `after`.

        Nothing in it is masked.
        """
        staged = self._staged(run_id)
        return changed_rows_step(staged, self._rules(staged), self.world.comparer())

    @jvm_errors("comparing tables")
    def compare(
        self,
        dataset: str,
        other: str | None = None,
        *,
        start: str | None = None,
        end: str | None = None,
        left: Where | None = None,
        right: Where | None = None,
        ignore: Sequence[str] = (),
        samples: int = 10,
    ) -> Compared:
        """Two versions of a dataset, or parts of it or of two. Needs no run.

        `start` and `end` name versions: a number, a tag, a branch, a moment, or `head`, which they are when left out.
        `left` and `right` pick rows by the values of columns, and these columns are not compared.
        """
        both = self._both(dataset, other, (start, end), (left, right), ignore)
        found = self.world.comparer().compare(*both.frames, replace(both.asked, samples=samples))
        parts = {name: getattr(found, name) for name in type(found).model_fields}
        return Compared(**parts, left=both.sides[0], right=both.sides[1])

    @jvm_errors("comparing tables")
    def compare_rows(
        self,
        dataset: str,
        other: str | None = None,
        *,
        start: str | None = None,
        end: str | None = None,
        left: Where | None = None,
        right: Where | None = None,
        ignore: Sequence[str] = (),
    ) -> DataFrame:
        """Every row that differs, as a frame like that of `diff_rows`; for the same arguments as `compare`."""
        both = self._both(dataset, other, (start, end), (left, right), ignore)
        return self.world.comparer().changed_rows(*both.frames, both.asked)

    def _both(
        self,
        dataset: str,
        other: str | None,
        versions: tuple[str | None, str | None],
        picked: tuple[Where | None, Where | None],
        ignore: Sequence[str],
    ) -> _Both:
        names, (left, right) = (dataset, other or dataset), picked
        if other is None and not (any(versions) or left or right):
            raise InvalidRequest(
                f"what is {dataset} to be compared with?", hint="add --from VERSION, --left and --right, or a dataset"
            )
        sides = [
            self._side(name, version, where or {}) for name, version, where in zip(names, versions, picked, strict=True)
        ]
        frames = [
            self.world.rows_at(side.dataset, side.version, _predicate(where or {}))
            for side, where in zip(sides, picked, strict=True)
        ]
        given = {*(left or {}), *(right or {})}
        for name in ignore:
            if not any(name in frame.columns for frame in frames):
                known = ", ".join(frames[0].columns)
                raise UnknownName(f"there is no column {name!r} to ignore", hint=f"columns are: {known}", column=name)
        rules = self._without(self.world.diff_rules(dataset), given | set(ignore))
        for name in dict.fromkeys(names):
            require_masked(self.world, name, [column for frame in frames for column in frame.columns])
        masked = rules.masked | self.world.diff_rules(names[1]).masked
        asked = Comparing(replace(rules, masked=masked), by_time=None if given else self._by_time(dataset))
        return _Both((sides[0], sides[1]), (frames[0], frames[1]), asked)

    def _staged(self, run_id: str) -> Staged:
        reader = self.world.reader()
        run = reader.run(run_id)
        if run.state in (RunState.CANCELLING, RunState.CANCELLED):
            raise StateConflict(f"run {run.run_id} is {run.state}: its stage is gone", hint="plan it again")
        events, manifest = reader.events(run.run_id), reader.manifest(run.run_id)
        canary = judged(events) if run.state in (RunState.RUNNING, RunState.FAILED) else None
        return Staged(
            run.run_id,
            manifest if canary is None else part_of(manifest, canary.chunks),
            recorded_stage(run.run_id, events),
            recorded_staged(events) if canary is None else canary.staged,
            reader.verdict(run.run_id),
            self.world.target(run.dataset),
        )

    def _rules(self, staged: Staged) -> DiffRules:
        dataset = staged.manifest.target.dataset
        require_masked(self.world, dataset, [column.name for column in staged.manifest.target.identity.columns])
        return rules_of(staged.manifest, self.world.diff_rules(dataset))

    def _side(self, dataset: str, version: str | None, where: Where) -> ComparedSide:
        relation = self.world.relation(dataset)
        picked = tuple(f"{column}={value}" for column, values in where.items() for value in _listed(values))
        found = self.world.version(dataset, version or "head")
        return ComparedSide(dataset=dataset, table=relation.table, version=found, where=picked)

    def _by_time(self, dataset: str) -> tuple[TimeColumn, Grain] | None:
        relation = self.world.relation(dataset)
        return (relation.time, relation.grain) if isinstance(relation, Dataset) else None

    def _without(self, rules: DiffRules, columns: set[str]) -> DiffRules:
        key = tuple(name for name in rules.key if name not in columns)
        return replace(rules, key=key, ignored=frozenset(columns))


def _predicate(where: Where) -> Predicate:
    return Predicate(
        clauses=tuple(ValueClause(column=column, values=_listed(values)) for column, values in where.items())
    )


def _listed(values: str | Sequence[str]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else tuple(values)
