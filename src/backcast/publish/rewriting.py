"""Rows and files that an undo is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import Drifted, UndoRefused
from backcast.model.masked import hides
from backcast.model.run import Publication
from backcast.model.stage import rewrite_stage_of
from backcast.model.table import FileList, Forget, NetChange, PublishMode, StageWrite
from backcast.publish.job import PublishJob

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_AGAIN = "restate the window again with the old version of the code"


def described_by(job: PublishJob, publication: Publication) -> str | None:
    """A version that has the files which the publish took out, or had them when it was opened, as the stage."""
    removed = frozenset(publication.removed)
    if not removed:
        return publication.base
    for version in (publication.base, publication.head):
        try:
            if removed <= job.target.files(version, job.reach).paths:
                return version
        except Drifted:
            # Delta forgets a version by its own age, also one that was the newest until the publish.
            continue
    return publication.staged


def doubled_keys(job: PublishJob, publication: Publication, now: FileList) -> UndoRefused | None:
    """Live rows that came with a key which a merge took away, and which its undo would bring back."""
    key, target = job.manifest.settings.key, job.target
    if not publication.removed:
        return None
    came = now.paths - target.files(publication.version, job.reach).paths
    if not came:
        return None
    old = target.read_files(described_by(job, publication), frozenset(publication.removed), job.reach)
    new = target.read_files(publication.version, frozenset(publication.added), job.reach)
    back = old.join(new, list(key), "left_anti")
    shared = job.engine.shared_keys(target.read_files(now.version, came, job.reach), back, key)
    if not shared:
        return None
    shown = "" if hides(job.manifest.settings.masked, *key) else f", for example {', '.join(shared[:3])}"
    reason = f"rows came since with keys that the merge took away{shown}"
    return UndoRefused(reason, hint="take those rows away first, or leave it", rewritable=False)


def without(job: PublishJob, now: DataFrame, published: DataFrame) -> DataFrame:
    """The rows of now less those that were published. Refuses when one of these is gone."""
    maps = [column.name for column in job.manifest.target.identity.columns if "map<" in column.type]
    if maps:
        raise UndoRefused(f"rows cannot be compared one by one: {', '.join(maps)} holds maps", hint=_AGAIN)
    if published.exceptAll(now).limit(1).count():
        raise UndoRefused(
            "published rows were changed or deleted since, so nobody can say what the old state plus those changes is",
            hint=_AGAIN,
        )
    return now.exceptAll(published)


def replaced_since(job: PublishJob, publication: Publication, head: str | None) -> tuple[DataFrame, frozenset[str]]:
    """The rows of an undo beside others, and the files that they take the place of.

    A published row is in a file that was published or in one that came later: the others are as they were.
    """
    target, scope = job.target, job.reach
    added, removed = frozenset(publication.added), frozenset(publication.removed)
    if target.missing(added | removed):
        raise UndoRefused("files of the publish are gone from storage", hint=_AGAIN)
    out = target.files(head, scope).paths - (target.files(publication.version, scope).paths - added)
    published = target.read_files(publication.version, added, scope)
    rows = without(job, target.read_files(head, out, scope), published)
    if removed:
        rows = rows.unionByName(target.read_files(described_by(job, publication), removed, scope))
    return rows, out


def restaged(
    job: PublishJob, publication: Publication, head: str | None, write: StageWrite, rows: DataFrame
) -> NetChange:
    """The rows on a stage of their own at the head, after dropping what an earlier attempt left there."""
    target, stage = job.target, rewrite_stage_of(publication.run_id, publication.generation, head)
    target.forget(Forget(refs=(stage.branch, stage.base_tag), versions=(), branch=stage.branch))
    target.open_stage(stage, write.predicate if write.mode is PublishMode.REPLACE else None)
    staged = target.write(stage, write, rows).version
    return target.net_change(stage, staged, write.predicate)
