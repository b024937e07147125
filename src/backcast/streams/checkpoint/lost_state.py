"""State of which no file is left: nothing in the folder shows that it was there, so other things must tell."""

from __future__ import annotations

from collections.abc import Iterator

from backcast.errors import Refused
from backcast.model.checkpoint import Damage, Severity
from backcast.model.checkpoint_log import Committed
from backcast.streams.checkpoint.content import key_columns
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.state_files import Operator, Store

STATE_UNKNOWN = "state-unknown"
GO_BACK = "go back to a batch whose state is whole, or restore a backup"
LOAD = "the first batch fails: CANNOT_LOAD_STATE_STORE"
_PARTITIONS = ("spark.sql.streaming.internal.stateStore.partitions", "spark.sql.shuffle.partitions")
"""What the query keeps, whatever the session says; the first one is newer Sparks'."""


def lost_state(checkpoint: Checkpoint, commit: Committed | None) -> Iterator[Damage]:
    """Operators, partitions and stores that were there, as the query's own record, its logs and what is left of its
    state say. `commit` is that of the batch that the stream would go on after.
    """
    ids = {} if commit is None else commit.state_ids
    numbers = {each.number for each in checkpoint.operators}
    count = max(
        [checkpoint.told or 0, *(each + 1 for each in numbers), *(int(each) + 1 for each in ids if each.isdigit())]
    )
    if not count:
        yield from _nothing_left(checkpoint)
        return
    lost = [missing(f"state/{each}", "nothing is left of this operator's state") for each in range(count)]
    found = [each for number, each in enumerate(lost) if number not in numbers]
    for operator in checkpoint.operators:
        found += _partitions(checkpoint, operator)
    yield from found


def refuse_lost(checkpoint: Checkpoint) -> None:
    """Raises Refused when the query had state of which nothing is left: it would begin with none, without a word."""
    batch = checkpoint.next_batch - 1
    found = next(lost_state(checkpoint, checkpoint.readable_commit(batch)), None) if batch >= 0 else None
    if found is not None:
        hint = "--fresh-state to begin there with none" if found.kind != STATE_UNKNOWN else found.remedy
        raise Refused(f"{found.file}: {found.what}", hint=hint)


def missing(file: str, what: str, at_restart: str = LOAD) -> Damage:
    """State without which the first batch fails."""
    return Damage(
        kind="state-missing", file=file, severity=Severity.FAILS, what=what, at_restart=at_restart, remedy=GO_BACK
    )


def _nothing_left(checkpoint: Checkpoint) -> Iterator[Damage]:
    if checkpoint.told is not None:
        return
    closing = checkpoint.closing
    if closing is not None:
        what = f"nothing is left of it: batch {closing} had no records, and only a query with state runs such a batch"
        yield missing("state", what)
    elif _has_watermark(checkpoint):
        yield Damage(
            kind=STATE_UNKNOWN,
            file="state",
            severity=Severity.UNKNOWN,
            what="there is no state, though the query has a watermark: either it keeps none, or all of it is gone",
            at_restart=f"a query without state goes on; of one with state {LOAD}",
            remedy="if the query keeps no state, say so: --stateless; else restore a backup",
        )


def _has_watermark(checkpoint: Checkpoint) -> bool:
    plan, commit = checkpoint.readable_plan(checkpoint.planned), checkpoint.readable_commit(checkpoint.committed)
    return any(each is not None and each.watermark_ms > 0 for each in (plan, commit))


def _partitions(checkpoint: Checkpoint, operator: Operator) -> Iterator[Damage]:
    present = {(each.name, each.partition) for each in operator.stores if each.files}
    kept = _partitions_kept(checkpoint)
    expected = operator.expected or tuple((name, kept) for name in sorted({each.name for each in operator.stores}))
    if _is_single(operator.stores):
        # Spark writes the number of shuffle partitions down for it, too.
        expected = tuple((name, 1) for name, _ in expected)
    for name, count in expected:
        for partition in range(count):
            if (name, partition) not in present:
                where = f"state/{operator.number}/{partition}"
                yield missing(where, f"nothing is left of store {name} of this partition")


def _partitions_kept(checkpoint: Checkpoint) -> int:
    plan = checkpoint.readable_plan(checkpoint.planned)
    told = [each for key in _PARTITIONS if plan is not None and (each := plan.conf.get(key, "")).isdigit()]
    return int(told[0]) if told else 0


def _is_single(stores: tuple[Store, ...]) -> bool:
    """Whether the operator adds up everything there is: without a key, all is in partition 0."""
    schemas = [keys for each in stores if (keys := key_columns(each.folder / "_metadata" / "schema")) is not None]
    return bool(schemas) and all(each == 0 for each in schemas)
