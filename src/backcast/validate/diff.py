"""Base against stage. The stage's digests come from the verdict when that has read the same version."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backcast.model.diff import Diff, DiffRules
from backcast.model.lineage import LINEAGE_COLUMNS
from backcast.model.manifest import Manifest
from backcast.model.scope import EVERYTHING
from backcast.model.table import FileRef, PublishMode, Stage
from backcast.model.verdict import Verdict
from backcast.ports import Target
from backcast.ports.comparing import Comparer, Comparing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Staged:
    """A run's stage, complete, and what was said about it."""

    run_id: str
    manifest: Manifest
    stage: Stage
    staged: str
    verdict: Verdict | None
    target: Target

    @property
    def current_verdict(self) -> Verdict | None:
        """The verdict, if it is about this very version."""
        return self.verdict if self.verdict is not None and self.verdict.staged == self.staged else None

    def rows(self) -> tuple[DataFrame, DataFrame]:
        """Both sides: the scope at the base and on the stage, or the files that go and those that come."""
        target, scope = self.target, self.manifest.scope.predicate
        if self.manifest.settings.publish_mode is PublishMode.REPLACE:
            return target.read(self.stage.base, scope), target.read(self.staged, scope)
        net = target.net_change(self.stage, self.staged, scope)
        return self._files(self.stage.base, net.removed), self._files(self.staged, net.added)

    def _files(self, version: str | None, files: tuple[FileRef, ...]) -> DataFrame:
        return self.target.read_files(version, frozenset(file.path for file in files), EVERYTHING)

    def comparing(self, rules: DiffRules, *, rows: bool = True, samples: int = 10) -> Comparing:
        """Chunk by chunk where chunks are parts of the table; offsets are none."""
        if self.manifest.settings.publish_mode is not PublishMode.REPLACE:
            return Comparing(rules, rows=rows, samples=samples)
        verdict = self.current_verdict
        return Comparing(
            rules,
            parts={chunk.id: chunk.predicate for chunk in self.manifest.chunks},
            known={each.chunk: each.digest for each in verdict.partitions} if verdict and verdict.partitions else None,
            unique=_keys_are_unique(verdict),
            rows=rows,
            samples=samples,
        )


def rules_of(manifest: Manifest, declared: DiffRules) -> DiffRules:
    """The key as the run knows it; lineage columns name the run, so they tell nothing about rows."""
    settings = manifest.settings
    lineage = frozenset(LINEAGE_COLUMNS if settings.lineage_columns else ())
    return replace(declared, key=settings.key, masked=declared.masked | set(settings.masked), ignored=lineage)


def diff(staged: Staged, rules: DiffRules, comparer: Comparer, *, rows: bool = True, samples: int = 10) -> Diff:
    """Reads each side once when nothing changed. Never raises because rows or schemas differ."""
    before, after = staged.rows()
    found = comparer.compare(before, after, staged.comparing(rules, rows=rows, samples=samples))
    parts = {name: getattr(found, name) for name in type(found).model_fields}
    return Diff(**parts, run_id=staged.run_id, base=staged.stage.base, staged=staged.staged)


def changed_rows(staged: Staged, rules: DiffRules, comparer: Comparer) -> DataFrame:
    """The rows that differ, as a frame."""
    return comparer.changed_rows(*staged.rows(), staged.comparing(rules))


def _keys_are_unique(verdict: Verdict | None) -> bool:
    """Whether validation has seen that no key of the stage occurs twice."""
    return verdict is not None and any(check.name == "key unique" and check.passed for check in verdict.checks)
