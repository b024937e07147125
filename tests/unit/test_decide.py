"""The decision on the head: which movements may be published over, and which must be refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backcast.errors import NotValidated, ScopeChanged
from backcast.model.manifest import LivePolicy
from backcast.model.table import FileList, FileRef, LiveCommit, Movement, NetChange
from backcast.publish.decide import RestageNeeded, decide, decide_append, decide_merge, merge_refusal

BASE = (FileRef("a", "day=1", 10, 1), FileRef("b", "day=2", 10, 1))
NET = NetChange(base="1", staged="2", added=(FileRef("n", "day=1", 20, 1),), removed=BASE, outside=())
COMMIT = LiveCommit("9", "append", datetime(2026, 1, 1, tzinfo=UTC), 1, 0)


def moved(now: tuple[FileRef, ...], *, compaction: bool = False) -> Movement:
    before, after = {file.path for file in BASE}, {file.path for file in now}
    return Movement(
        head="9",
        files=FileList("9", now),
        added=tuple(file for file in now if file.path not in before),
        removed=tuple(file for file in BASE if file.path not in after),
        only_compaction=compaction,
        commits=(COMMIT,) if before != after else (),
    )


@pytest.mark.parametrize("policy", list(LivePolicy))
def test_an_unmoved_scope_loses_exactly_what_the_stage_replaced(policy: LivePolicy) -> None:
    decision = decide(NET, moved(BASE), policy, "r", exact=False)
    assert (decision.remove, decision.live, decision.compacted) == ({"a", "b"}, frozenset(), False)


def test_after_a_compaction_the_files_it_made_go_instead() -> None:
    decision = decide(NET, moved((FileRef("c", "day=1", 20, 1),), compaction=True), LivePolicy.FAIL, "r", exact=False)
    assert decision.remove == {"c"}
    assert decision.compacted


def test_a_compaction_under_a_row_exact_scope_is_refused() -> None:
    """The compacted file also holds rows beside the scope, which the stage carried over from the old files."""
    with pytest.raises(ScopeChanged):
        decide(NET, moved((FileRef("c", "", 20, 1),), compaction=True), LivePolicy.KEEP, "r", exact=True)


def test_live_files_stop_fail_and_stay_under_keep() -> None:
    live = moved((*BASE, FileRef("l", "day=1", 3, 1)))
    with pytest.raises(ScopeChanged, match=r"1 file \(3 rows\) arrived in commit 9 \(append") as caught:
        decide(NET, live, LivePolicy.FAIL, "r", exact=False)
    assert "live: keep" in caught.value.hint
    decision = decide(NET, live, LivePolicy.KEEP, "r", exact=False)
    assert (decision.remove, decision.live) == ({"a", "b"}, {"l"})


def test_restage_is_asked_for_only_when_files_did_nothing_but_arrive() -> None:
    live = moved((*BASE, FileRef("l", "day=1", 3, 1)))
    with pytest.raises(RestageNeeded) as caught:
        decide(NET, live, LivePolicy.RESTAGE, "r", exact=False)
    assert caught.value.movement == live
    with pytest.raises(ScopeChanged) as refused:
        decide(NET, moved((BASE[0], FileRef("l", "day=1", 3, 1))), LivePolicy.RESTAGE, "r", exact=False)
    assert not isinstance(refused.value, RestageNeeded)
    compacted = moved((FileRef("c", "day=1", 20, 1),), compaction=True)
    assert decide(NET, compacted, LivePolicy.RESTAGE, "r", exact=False).compacted


@pytest.mark.parametrize(
    "now",
    [
        (BASE[0],),
        (BASE[0], FileRef("u", "day=2", 9, 1)),
        (*BASE, FileRef("l", "day=1", 3, 1, deletes=1)),
    ],
    ids=["a file was deleted", "a file was rewritten with other rows", "delete files apply"],
)
@pytest.mark.parametrize("policy", list(LivePolicy))
def test_rows_that_were_changed_or_deleted_in_scope_are_never_published_over(
    now: tuple[FileRef, ...], policy: LivePolicy
) -> None:
    with pytest.raises(ScopeChanged) as caught:
        decide(NET, moved(now), policy, "run-1", exact=False)
    assert not isinstance(caught.value, RestageNeeded)
    assert "backcast cancel run-1" in caught.value.hint


MERGED = NetChange(base="1", staged="2", added=(FileRef("n", "day=1", 20, 1),), removed=BASE[:1], outside=())
LIVE = FileRef("l", "day=1", 3, 1)


def test_an_append_takes_nothing_out_and_a_stage_that_does_is_not_one() -> None:
    appended = NetChange(base="1", staged="2", added=MERGED.added, removed=(), outside=())
    decision = decide_append(appended, "r")
    assert (decision.remove, decision.live, decision.compacted) == (frozenset(), frozenset(), False)
    with pytest.raises(NotValidated, match="takes out 1 file"):
        decide_append(MERGED, "run-1")


@pytest.mark.parametrize("policy", list(LivePolicy))
def test_a_merge_goes_beside_whatever_did_not_touch_the_files_that_it_wrote_anew(policy: LivePolicy) -> None:
    """Files that arrived are handed on to be compared by key, unless they are compacted ones of rows known before."""
    assert decide_merge(MERGED, moved(BASE), policy, "r").live == frozenset()
    assert decide_merge(MERGED, moved((*BASE, LIVE)), policy, "r").live == {"l"}
    rewritten = decide_merge(MERGED, moved((BASE[0], LIVE)), policy, "r")
    assert (rewritten.remove, rewritten.live) == ({"a"}, {"l"})
    compacted = decide_merge(MERGED, moved((BASE[0], FileRef("c", "day=2", 10, 1)), compaction=True), policy, "r")
    assert (compacted.remove, compacted.live, compacted.compacted) == ({"a"}, frozenset(), False)


@pytest.mark.parametrize("compaction", [True, False])
@pytest.mark.parametrize("policy", list(LivePolicy))
def test_a_merge_whose_own_files_are_gone_is_refused_or_staged_again(policy: LivePolicy, compaction: bool) -> None:
    with pytest.raises(ScopeChanged, match="1 file left") as caught:
        decide_merge(MERGED, moved((BASE[1], LIVE), compaction=compaction), policy, "run-1")
    assert isinstance(caught.value, RestageNeeded) == (policy is LivePolicy.RESTAGE)
    assert "backcast cancel run-1" in caught.value.hint


def test_keys_that_live_rows_share_with_a_merge_are_named() -> None:
    refused = merge_refusal(moved((*BASE, LIVE)), LivePolicy.FAIL, "r", ["id=1", "id=2", "id=3", "id=4"])
    assert refused.message.endswith("for example id=1, id=2, id=3")
    assert "live: keep" not in refused.hint
