"""Spark jobs of one thread, ended from beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from uuid import uuid4

from backcast.spark.gateway import is_jvm_error

_POLL_SECONDS = 0.5


@contextmanager
def cancelled_when(over: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """By a tag that jobs of this thread carry.

    It must surround writes to a stage only: a commit that is cut off there is found like one that a crash cut off.
    """
    from pyspark.sql import SparkSession

    context, tag = SparkSession.active().sparkContext, f"backcast-{uuid4().hex}"
    done, cancelled = Event(), Event()

    def look() -> None:
        while not done.wait(_POLL_SECONDS):
            if over():
                cancelled.set()
                try:
                    # Each time: a write is several jobs, and the next one may have begun since.
                    context.cancelJobsWithTag(tag)
                except Exception as error:
                    if not is_jvm_error(error):
                        raise
                    return

    context.addJobTag(tag)
    beside = Thread(target=look, name="backcast-budget", daemon=True)
    beside.start()
    try:
        yield cancelled.is_set
    finally:
        done.set()
        beside.join()
        try:
            context.removeJobTag(tag)
        except Exception as error:
            # A JVM that is gone has no tags: what happened to it is told by whoever was at work.
            if not is_jvm_error(error):
                raise
