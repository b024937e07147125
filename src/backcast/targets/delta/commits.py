"""Commits as the log's JSON tells them: on a stage, and on the live table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from backcast.errors import Drifted, SparkFailed
from backcast.model.table import Merged, Stage, StageCommit
from backcast.spark.delta.commit import Commit, read_commit
from backcast.spark.delta.handle import DeltaHandle, Version


def stage_note(run_id: str, chunk_ids: tuple[str, ...], token: int, merged: Merged | None = None) -> str:
    note: dict[str, Any] = {"backcast.run": run_id, "backcast.chunks": chunk_ids, "backcast.token": token}
    return json.dumps(note if merged is None else note | {"backcast.merged": asdict(merged)})


def carry_note(run_id: str, commits: tuple[tuple[int, tuple[str, ...]], ...]) -> str:
    """For a commit that carries others over from an earlier stage: token and chunks of each."""
    return json.dumps({"backcast.run": run_id, "backcast.carried": commits})


def stage_commits(handle: DeltaHandle, staged: Version) -> Iterator[Commit]:
    """Commits of a stage up to that version, oldest first, without the one that made it."""
    for number in range(1, staged.number + 1):
        commit = read_commit(handle.jvm, staged.log, number)
        if commit is None:
            raise SparkFailed(
                f"commit {number} of stage {staged.branch} is gone from its log", hint="cancel the run and plan again"
            )
        yield commit


def changed(handle: DeltaHandle, version: str) -> tuple[frozenset[str], frozenset[str]]:
    """Paths of the files that one commit of the live table added and removed."""
    commit = _live(handle, version)
    return (
        frozenset(handle.root.canonical(each["path"]) for each in commit.adds),
        frozenset(handle.root.canonical(each["path"]) for each in commit.removes),
    )


def properties(handle: DeltaHandle, version: str) -> dict[str, str]:
    """What a run wrote beside that commit of the live table."""
    return {key: str(value) for key, value in _live(handle, version).note.items() if key.startswith("backcast.")}


def history(handle: DeltaHandle, stage: Stage) -> tuple[StageCommit, ...]:
    """Commits of this run on its stage, oldest first, with the files each added."""
    log = handle.stage_log(stage.branch)
    snapshot = handle.jvm.snapshot(log, None)
    if handle.jvm.number(snapshot) < 1:
        return ()
    staged = Version(handle, log, snapshot, stage.branch)
    return tuple(
        each
        for commit in stage_commits(handle, staged)
        if commit.note.get("backcast.run") == stage.run_id
        for each in _told(staged, commit)
    )


def find_commit(handle: DeltaHandle, stage: Stage, token: int) -> StageCommit:
    """The newest commit with that token. Never the stage's newest as such: it says nothing about who wrote it."""
    for commit in reversed(history(handle, stage)):
        if commit.token == token:
            return commit
    raise SparkFailed(
        f"the commit with token {token} is not on stage {stage.branch}", hint="run the same command again", token=token
    )


def _live(handle: DeltaHandle, version: str) -> Commit:
    commit = read_commit(handle.jvm, handle.log, int(version))
    if commit is None:
        raise Drifted(f"version {version} of {handle.name} is gone", hint="raise delta.logRetentionDuration")
    return commit


def _told(staged: Version, commit: Commit) -> Iterator[StageCommit]:
    if "backcast.carried" not in commit.note:
        yield _stage_commit(staged, commit)
        return
    for token, chunk_ids in commit.note["backcast.carried"]:
        yield StageCommit(f"{staged.branch}@{commit.version}", tuple(chunk_ids), int(token), rows=0)


def _stage_commit(staged: Version, commit: Commit) -> StageCommit:
    added = tuple(staged.data_file(add).ref for add in commit.adds)
    copied = int(commit.info.get("operationMetrics", {}).get("numCopiedRows") or 0)
    told = commit.note.get("backcast.merged")
    merged = None if told is None else Merged(**told)
    return StageCommit(
        version=f"{staged.branch}@{commit.version}",
        chunk_ids=tuple(commit.note["backcast.chunks"]),
        token=int(commit.note["backcast.token"]),
        rows=sum(file.rows for file in added) - copied if merged is None else merged.written,
        added=added,
        merged=merged,
    )
