"""What is wrong with the files of a checkpoint, and what Spark would make of each. Every sentence was measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from backcast.model.checkpoint import Damage, Severity, Verification
from backcast.model.checkpoint_log import Garbled, SourceOffset
from backcast.streams.checkpoint.content import fits_checksum
from backcast.streams.checkpoint.damage_state import StateDamages
from backcast.streams.checkpoint.folder import Checkpoint, start_of
from backcast.streams.checkpoint.out_of_step import out_of_step, step_back

_GO_BACK = "go back to a batch that is whole, or restore a backup"
_FAILS = {
    "empty": "the query fails at its start: `Incomplete log file`",
    "version": "the query fails at its start: MALFORMED_LOG_FILE",
    "json": "the query fails at its start with an error of its JSON parser",
    "shape": "the query fails at its start",
    "unreadable": "the query fails at its start",
}


def verify(checkpoint: Checkpoint) -> Verification:
    """Every damage that the files show. Reads each byte that a restart needs, and never fails on one."""
    state = StateDamages(checkpoint)
    found = (*_log_damages(checkpoint), *state.damages())
    return Verification(
        path=str(checkpoint.root),
        damages=tuple(sorted(found, key=lambda each: (list(Severity).index(each.severity), each.file))),
        files=len(checkpoint.files()),
        recoverable=recoverable(checkpoint, state),
    )


def damages_of(checkpoint: Checkpoint) -> tuple[Damage, ...]:
    return verify(checkpoint).damages


def recoverable(checkpoint: Checkpoint, state: StateDamages | None = None) -> int | None:
    """The newest committed batch whose logs and state are whole."""
    judge = state or StateDamages(checkpoint)
    return next((each for each in reversed(checkpoint.commits) if is_whole(checkpoint, each, judge)), None)


def is_whole(checkpoint: Checkpoint, batch: int, state: StateDamages | None = None) -> bool:
    """Whether the stream could go on after that batch."""
    try:
        plan, commit = checkpoint.plan(batch), checkpoint.commit(batch)
    except Garbled:
        return False
    if (
        plan is None
        or commit is None
        or step_back(checkpoint, batch)
        or not all(_fits(checkpoint, f"{name}/{batch}") for name in ("offsets", "commits"))
    ):
        return False
    return not (state or StateDamages(checkpoint)).problems(batch + 1)


def _log_damages(checkpoint: Checkpoint) -> Iterator[Damage]:
    yield from _metadata(checkpoint)
    yield from _steps(checkpoint)
    needed = {checkpoint.planned, None if checkpoint.planned is None else checkpoint.planned - 1}
    yield from _each(checkpoint, "offsets", checkpoint.offsets, needed, checkpoint.plan)
    yield from _each(checkpoint, "commits", checkpoint.commits, {checkpoint.committed}, checkpoint.commit)
    yield from _source_counts(checkpoint)
    yield from out_of_step(checkpoint)
    yield from _kafka_starts(checkpoint)


def _metadata(checkpoint: Checkpoint) -> Iterator[Damage]:
    try:
        known = checkpoint.query_id()
    except Garbled as error:
        yield Damage(
            kind=f"metadata-{error.kind}",
            file="metadata",
            severity=Severity.FAILS,
            what=str(error),
            at_restart="the query fails at its start with an error of its JSON parser",
            remedy="restore a backup, or write the id that the sink's history names",
        )
        return
    if known is None and (checkpoint.offsets or checkpoint.commits):
        yield Damage(
            kind="metadata-missing",
            file="metadata",
            severity=Severity.SILENT,
            what="it is not there, so nobody knows the id of the query",
            at_restart="Spark 4.0 goes on under a new id without a word: a table that skips by id takes batches again; "
            "from 4.2 on it refuses",
            remedy="restore a backup, or write the id that the sink's history names",
        )
    elif known is not None:
        yield from _stale(checkpoint, "metadata", needed=True)


def _steps(checkpoint: Checkpoint) -> Iterator[Damage]:
    planned, committed = checkpoint.planned, checkpoint.committed
    if planned is None:
        if committed is not None:
            yield Damage(
                kind="offsets-missing",
                file="offsets",
                severity=Severity.SILENT,
                what=f"no batch is planned, and batch {committed} is committed",
                at_restart="batch 0 is run into the sink again, then the query fails: CONCURRENT_STREAM_LOG_UPDATE",
                remedy="restore a backup, or fork it at the offsets that the sink proves",
            )
        return
    if committed is not None and committed > planned:
        yield Damage(
            kind="commit-ahead",
            file=f"offsets/{committed}",
            severity=Severity.SILENT,
            what=f"batch {committed} is committed, and its offsets are not there; the last ones are those of {planned}",
            at_restart=f"batch {planned} is run into the sink again, then the query fails: "
            "CONCURRENT_STREAM_LOG_UPDATE",
            remedy=_GO_BACK,
        )
    elif committed is None or committed < planned - 1:
        yield from _behind(checkpoint, planned, committed)
    if planned > 0 and planned - 1 not in checkpoint.offsets:
        yield Damage(
            kind="offsets-missing",
            file=f"offsets/{planned - 1}",
            severity=Severity.FAILS,
            what="it is not there, and the last batch begins where it ends",
            at_restart=f"the query fails at its start: `batch {planned - 1} doesn't exist`",
            remedy=_GO_BACK,
        )
    yield from _gaps("offsets", checkpoint.offsets, planned - 1)
    yield from _gaps("commits", checkpoint.commits, -1)


def _behind(checkpoint: Checkpoint, planned: int, committed: int | None) -> Iterator[Damage]:
    if planned == 0:
        return
    first = checkpoint.offsets[0] if committed is None else committed + 1
    one = first == planned - 1
    lost, verb = (f"batch {first}", "is") if one else (f"batches {first} to {planned - 1}", "are")
    yield Damage(
        kind="commits-behind",
        file=f"commits/{planned - 1}",
        severity=Severity.SILENT,
        what=f"{lost} {verb} not committed, though batch {planned} is planned",
        at_restart=f"Spark warns, and runs batch {planned} alone: rows of {lost} that are not in the sink never get "
        "there",
        remedy="see in the sink whether they are there; else go back to the batch before them",
    )


def _gaps(name: str, present: tuple[int, ...], told: int) -> Iterator[Damage]:
    """In the middle: nothing reads them, but nobody can go back there either."""
    if not present:
        return
    for number in sorted(set(range(present[0], present[-1])) - set(present) - {told}):
        yield Damage(
            kind=f"{name}-gap",
            file=f"{name}/{number}",
            severity=Severity.HARMLESS,
            what="it is not there, between others that are",
            at_restart="nothing reads it; the checkpoint cannot go back to that batch",
        )


def _each(
    checkpoint: Checkpoint,
    name: str,
    present: tuple[int, ...],
    needed: set[int | None],
    read: Callable[[int], object],
) -> Iterator[Damage]:
    for number in present:
        file = f"{name}/{number}"
        try:
            read(number)
        except Garbled as error:
            yield _garbled(file, error, needed=number in needed)
            continue
        yield from _stale(checkpoint, file, needed=number in needed)


def _garbled(file: str, error: Garbled, *, needed: bool) -> Damage:
    newer = error.kind == "newer"
    severity = (Severity.UNKNOWN if newer else Severity.FAILS) if needed else Severity.HARMLESS
    restart = _FAILS.get(error.kind, "only a Spark that writes this version can say")
    return Damage(
        kind=f"log-{error.kind}",
        file=file,
        severity=severity,
        what=f"line {error.line}: {error}",
        at_restart=restart if needed else "nothing reads it; the checkpoint cannot go back to that batch",
        remedy="use a release of backcast that knows it" if newer else _GO_BACK if needed else "",
    )


def _stale(checkpoint: Checkpoint, file: str, *, needed: bool) -> Iterator[Damage]:
    """Spark never looks at the checksum of a log: it takes whatever stands there."""
    if _fits(checkpoint, file):
        return
    yield Damage(
        kind="changed",
        file=file,
        severity=Severity.SILENT if needed else Severity.HARMLESS,
        what="it does not fit the checksum beside it: somebody changed one of the two",
        at_restart="Spark does not compare them and goes by what stands there"
        if needed
        else "nothing reads it; the checkpoint cannot go back to that batch",
        remedy="compare it with a backup; if it was changed on purpose, remove the checksum" if needed else "",
    )


def _fits(checkpoint: Checkpoint, file: str) -> bool:
    try:
        return fits_checksum(checkpoint.root / file) is not False
    except OSError:
        return True


def _source_counts(checkpoint: Checkpoint) -> Iterator[Damage]:
    last = checkpoint.readable_plan(checkpoint.planned)
    if last is None or checkpoint.planned is None:
        return
    before = checkpoint.readable_plan(checkpoint.planned - 1)
    numbered = [int(each.name) for each in _folders(checkpoint.root / "sources") if each.name.isdecimal()]
    told = len(last.sources)
    wanted = max([*(number + 1 for number in numbered), 0 if before is None else len(before.sources)], default=0)
    if last.version == "v1" and wanted and (told < wanted or (before is not None and told != len(before.sources))):
        yield Damage(
            kind="sources",
            file=f"offsets/{checkpoint.planned}",
            severity=Severity.FAILS,
            what=f"it has offsets of {told} where there were {wanted} sources",
            at_restart="the query fails at its start with an assertion about the number of its sources",
            remedy=_GO_BACK,
        )


def _kafka_starts(checkpoint: Checkpoint) -> Iterator[Damage]:
    """Where a Kafka source began: not needed any more, but read."""
    last = checkpoint.readable_plan(checkpoint.planned)
    for each in () if last is None else last.sources:
        file = Path("sources", each.name, "0")
        if each.kafka is None or not (checkpoint.root / file).is_file():
            continue
        if SourceOffset(each.name, 2, start_of(checkpoint.root / file)).kafka is None:
            yield Damage(
                kind="source-start",
                file=str(file),
                severity=Severity.FAILS,
                what="where the source began cannot be read",
                at_restart="the query fails at its start; without the file it would not",
                remedy="remove it and the checksum beside it",
            )


def _folders(folder: Path) -> list[Path]:
    return [each for each in folder.iterdir() if each.is_dir()] if folder.is_dir() else []
