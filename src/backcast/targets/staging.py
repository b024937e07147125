"""What a failed write to a stage means, whatever the format."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from backcast.errors import ChunkFailed, Conflict, Refused, SparkFailed
from backcast.model.table import StageWrite
from backcast.spark.gateway import answered, find_cause, translate


@contextmanager
def staging_errors(write: StageWrite, lost_race: frozenset[str]) -> Iterator[None]:
    """A transform is lazy: what it raises comes up inside, as the failure of Spark's job, and fails the chunks.

    `lost_race` are the classes of Java exceptions by which the format says that somebody else's commit was first.
    """
    try:
        yield
    except Exception as error:
        failure = translate(error, "writing to the stage")
        if failure is None:
            raise
        if find_cause(error, lost_race):
            lost = "the stage's commit lost the race against others"
            raise Conflict(lost, hint="run the same command again") from error
        in_job = isinstance(failure, SparkFailed | Refused) and answered(error)
        if not in_job or "SparkContext" in failure.message:
            raise failure from error
        hint = "see the run's log for the cause, repair it, then retry the run"
        raise ChunkFailed(failure.message, hint=hint, chunks=",".join(write.chunk_ids)) from error
