"""Let go of what is no longer needed: stages of cancelled runs at once, refs of published runs after the undo window.

Dropping a ref alone is never enough: a later expiry by someone else would then walk versions whose removed files are
live again and delete those. So the versions behind the refs are forgotten in the same commit.
"""

from __future__ import annotations

from datetime import datetime

from backcast.model.run import Publication, Run
from backcast.model.stage import head_tag, rewrite_stage_of
from backcast.model.states import EffectState, RunState
from backcast.model.table import Forget, Stage
from backcast.ports import Store


def stage_forget(stages: tuple[Stage, ...]) -> Forget:
    """Everything of a run that was never published."""
    return Forget(refs=tuple(_stage_refs(stages)), versions=(), branch=stages[-1].branch)


def release_forget(run_id: str, stages: tuple[Stage, ...], publications: list[Publication]) -> Forget:
    """Everything of a published run: its stages, its tags, and those of its commits whose removed files are live
    again.
    """
    refs = _stage_refs(stages)
    versions = []
    for position, each in enumerate(publications):
        rewrite = rewrite_stage_of(run_id, each.generation, None)
        refs += [each.fence, head_tag(run_id, each.generation), rewrite.branch, rewrite.base_tag]
        refs += [each.undo_fence] if each.undo_fence else []
        if each.undone_at is not None:
            versions.append(each.version)
        if each.undo_version is not None and position + 1 < len(publications):
            versions.append(each.undo_version)
    return Forget(refs=tuple(refs), versions=tuple(versions), branch=stages[-1].branch)


def _stage_refs(stages: tuple[Stage, ...]) -> list[str]:
    return [name for stage in stages for name in (stage.branch, stage.base_tag)]


def close_effects(store: Store, run_id: str, files: int) -> None:
    """Everything of the run has just been forgotten: that also ends what a process intended that died before."""
    for effect in store.effects.open(run_id):
        if effect.name == "forget":
            store.effects.end(effect, EffectState.LANDED, files=files)
        else:
            store.effects.end(effect, EffectState.NOT_LANDED, reason="the stage was removed")


def releasable(run: Run, publications: list[Publication], now: datetime) -> tuple[bool, str]:
    """Whether gc may let go of the run's refs, and why or why not."""
    if run.state is RunState.CANCELLED:
        return True, "cancelled"
    if run.state not in (RunState.PUBLISHED, RunState.SUPERSEDED, RunState.UNDONE) or not publications:
        return False, f"{run.state}: its stage is still needed"
    newest = publications[-1]
    if newest.undo_until > now:
        offer = "can be published" if run.state is RunState.UNDONE else "undo is guaranteed"
        return False, f"{run.state}: {offer} until {newest.undo_until:%Y-%m-%d %H:%M} UTC"
    return True, f"{run.state}: the undo window ended at {newest.undo_until:%Y-%m-%d %H:%M} UTC"
