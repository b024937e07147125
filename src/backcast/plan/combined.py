"""What several records decide together cannot be cut by offsets: neither into slices, nor where a stream takes over."""

from __future__ import annotations

from collections.abc import Sequence

from backcast.model.analysis import TAKEN_BY_KEY, Combines
from backcast.model.finding import Finding, block
from backcast.model.manifest import InputPin
from backcast.model.request import Kind, Request
from backcast.model.table import PublishMode


def combined_findings(
    request: Request, mode: PublishMode, combines: Sequence[Combines], inputs: Sequence[InputPin], chunks: int
) -> list[Finding]:
    """A merge takes by key what it meets twice, and is never cut into slices."""
    merges = mode is PublishMode.MERGE
    does = [each for each in combines if not (merges and each in TAKEN_BY_KEY)]
    if mode is PublishMode.REPLACE or not does:
        return []
    if request.kind is Kind.BOOTSTRAP:
        return [
            block(
                "bootstrap.keeps-state",
                f"a row is made of several records ({', '.join(does)}): those behind the end of the bootstrap are the"
                " stream's, which would begin there without what the ones before have left in its state",
                "leave the bootstrap out: a stream without a checkpoint begins at the earliest record; once the log no"
                " longer has them, `publish: {mode: replace}` restates windows from the archive",
            )
        ]
    if merges or _is_whole(request, inputs, chunks):
        return []
    return [
        block(
            "append.keeps-state",
            f"a row is made of several records ({', '.join(does)}), and not all of them are in the same slice of"
            " offsets: rows of a part of them would be added beside the right ones",
            "restate whole windows: `publish: {mode: replace}`, then --from and --to; of a stream: --stream NAME",
        )
    ]


def _is_whole(request: Request, inputs: Sequence[InputPin], chunks: int) -> bool:
    """Whether all records of a window of time are read together."""
    left = any(pin.log is not None and pin.log.left is not None for pin in inputs)
    by_time = bool(request.start or request.dates) and not request.retries
    return by_time and chunks == 1 and not left
