"""What history keeps of a diff: numbers of chunks, rows and columns. No value of any row: evidence travels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backcast.model.diff import Diff
from backcast.model.evidence import DIFFED, MOST_CHUNKS
from backcast.model.run import Event


def is_recorded(diff: Diff, events: Iterable[Event]) -> bool:
    """Whether history holds a diff of this stage against this base already, which looked no less closely."""
    return any(
        (event.data["base"], event.data["staged"], len(event.data["partitions"]))
        == (diff.base, diff.staged, min(len(diff.partitions), MOST_CHUNKS))
        and (event.data["rows"] is not None or diff.rows is None)
        for event in events
        if event.name == DIFFED
    )


def diff_data(diff: Diff) -> dict[str, Any]:
    before, after = diff.total
    names = {"changed", "format_only", "tolerated", "name", "type"}
    return {
        "base": diff.base,
        "staged": diff.staged,
        "summary": diff.summary(),
        "rows_before": before,
        "rows_after": after,
        "chunks": {status: diff.count(status) for status in ("same", "changed", "added", "removed")},
        "rows": None if diff.rows is None else diff.rows.as_json(),
        "columns": [column.model_dump(mode="json", include=names) for column in diff.columns],
        "schema": diff.columns_changed.as_json(),
        "partitions": [
            {"chunk": each.chunk, "base": each.base.as_json(), "stage": each.stage.as_json()}
            for each in diff.partitions[:MOST_CHUNKS]
        ],
        **({} if diff.late is None else {"late": diff.late.as_json()}),
    }
