"""A live stream that is asked to stop, and killed, in the middle of a batch. More kills: stream_soak."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from backcast.errors import Failed
from backcast.model.live import StreamStatus
from backcast.model.pipeline import TableFormat
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import Orders
from tests.crash.stream_life import StreamLife

KILLED = {TableFormat.ICEBERG: "both", TableFormat.DELTA: "jvm"}


@pytest.mark.parametrize("table_format", list(TableFormat))
def test_whatever_ends_a_stream_in_the_middle_of_a_batch_every_record_is_in_the_table_once(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """SIGTERM and `stop` let the batch end, `--force` and SIGKILL do not. One process serves all: Spark starts once."""
    life = StreamLife(new_orders(table_format=table_format))
    life.write_slowly()
    try:
        with life.process() as process:
            life.send(20)
            life.start(process)

            life.enter_batch(4)
            # As a service manager does it: every process of the service, the JVM too.
            os.killpg(process.process.pid, signal.SIGTERM)
            stopped = StreamStatus.model_validate(process.answer())
            assert (stopped.state, stopped.batches[0].landed) == ("stopped", True)
            life.check()

            life.start(process)
            life.enter_batch(4)
            with pytest.raises(Failed, match="its batch is not over after 0 s"):
                life.stop(timeout=0.1)
            assert life.status().state == "stopping"
            assert life.stop().batches[0].landed
            process.answer()
            life.check()

            life.start(process)
            life.enter_batch(60)
            forced = life.stop(force=True, timeout=50)
            assert (forced.state, forced.batches[0].landed) == ("stopped", False)
            process.answer()

            life.write_at_once()
            life.start(process)
            wait_until(life.has_read_all, "the batch that was cut off is repeated", 60)
            life.check()

            life.stop()
            process.answer()
            life.write_slowly()
            life.start(process)
            life.enter_batch(60)
            life.kill(process, KILLED[table_format])
        life.write_at_once()
        assert life.catch_up().state == "stopped"
        life.check()
    finally:
        life.close()
