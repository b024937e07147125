"""Faults on the line between Python and Spark's JVM: the call arrives and is carried out, its answer does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


GATEWAY = "between the JVM and Python"
_ARGUMENTS = ("r", "s")
"""How py4j marks an argument that is an object, and one that is a text."""


@contextmanager
def answer_lost(spark: SparkSession, call: str) -> Iterator[None]:
    """Lose the answer to the first call of a JVM method of that name with arguments, which must come."""
    from py4j.protocol import Py4JNetworkError

    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client  # noqa: SLF001 - py4j has no public name for it
    send = client.send_command
    lost: list[str] = []

    def cut(command: str, *args: Any, **kwargs: Any) -> Any:
        answer = send(command, *args, **kwargs)
        if not lost and any(f"\n{call}\n{kind}" in command for kind in _ARGUMENTS):
            lost.append(call)
            raise Py4JNetworkError("the line was cut before the answer came")
        return answer

    client.send_command = cut
    try:
        yield
    finally:
        del client.send_command
    assert lost, f"{call} was not called"
