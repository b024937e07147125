"""What became of every offset that a job read, on record before its rows are; and what it has to set aside."""

from __future__ import annotations

from backcast.errors import QuarantineFull
from backcast.model.proof import COVERED, LogProof, newest
from backcast.model.words import many
from backcast.ports import LogReading, Unusable
from backcast.run.compute import Computed
from backcast.run.job import RunJob


def prove(job: RunJob, computed: Computed, token: int, chunk_ids: tuple[str, ...]) -> None:
    """Raises QuarantineFull when the run has set aside more records than it may."""
    # Counted too often by tasks that were repeated, too, but never as none when there are some.
    sifted = computed.sifted if computed.sifted is not None and computed.sifted.count() != 0 else None
    if sifted is not None and sifted.strangers() != 0:
        job.engine.refuse_strangers(sifted.rejected, frozenset(log.topic for log in computed.logs.values()))
    for name, log in computed.logs.items():
        coverage, handed_over = log.proof()
        proof = LogProof(input=name, token=token, chunks=chunk_ids, coverage=coverage, handed_over=handed_over)
        if coverage.quarantined or sifted is not None:
            rejected = None if sifted is None else sifted.rejected
            found = Unusable(coverage.quarantined, rejected, _aside(job, name, without=chunk_ids))
            number = log.quarantine(job.run.run_id, chunk_ids, found, job.clock.now())
            proof = proof.model_copy(update={"rejected": number})
        job.store.runs.record(job.run.run_id, COVERED, **proof.as_json())
        if proof.aside:
            _judge(job, name, log)


def _aside(job: RunJob, name: str, without: tuple[str, ...] = ()) -> int:
    """Records of the input that the run has set aside so far, in other chunks than these."""
    proofs = newest(job.store.runs.events(job.run.run_id))
    return sum(each.aside for each in proofs if each.input == name and set(without).isdisjoint(each.chunks))


def _judge(job: RunJob, name: str, log: LogReading) -> None:
    """Once more with what is on record now: workers that met some at the same time did not know of each other."""
    found = _aside(job, name)
    if log.most is not None and found > log.most:
        raise QuarantineFull(
            f"the run has set aside {many(found, 'record')} of input {name}, and {log.most:,} are allowed",
            hint=f"look at them: backcast quarantine show {job.run.run_id}",
        )
