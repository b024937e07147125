"""What verbs that only look leave in a run's history, so that its evidence can tell what was seen before a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.attest.diffs import diff_data, is_recorded
from backcast.model.evidence import DIFFED

if TYPE_CHECKING:
    from backcast.model.diff import Diff
    from backcast.world import World


def keep_diff(world: World, diff: Diff) -> None:
    """The numbers of a diff, once for each stage that was looked at."""
    runs = world.store().runs
    if not is_recorded(diff, runs.events(diff.run_id)):
        runs.record(diff.run_id, DIFFED, **diff_data(diff))
