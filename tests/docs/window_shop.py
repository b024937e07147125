"""What the runbooks about a window find in the project that `init` made: runs that died, and what others did."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.control import ControlPlane
from backcast.errors import ChunkFailed
from backcast.model.request import Request
from backcast.model.run import lease_name
from backcast.project.config import load_project
from backcast.testing.faults import SimulatedCrash, at_point, crash_at
from tests.crash.life import DoomedWiring

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_STAGED = "chunk.after-record"
_READS_RATES = 'ctx.window.start.day < 20 or open(__file__.replace("pipelines/daily.py", "rates.csv")).close()'


def overtaken(control: ControlPlane, spark: SparkSession) -> str:
    """A run of a day into which a sale came while it computed."""
    run_id = _planned(control, "2026-01-06", "2026-01-07")
    control.run(run_id)
    sale = "9000, TIMESTAMP'2026-01-06 12:00:00Z', 0, 'sale', 5.00"
    spark.sql(f"INSERT INTO lake.shop.events VALUES ({sale})")
    spark.sql("INSERT INTO lake.shop.daily VALUES (DATE'2026-01-06', 0, 'Berlin', 1, 5.00)")
    return run_id


def one_by_one(root: Path) -> None:
    """From here on a chunk is a job of its own, and the transform reads a file for the last days of a month."""
    config, code = root / "backcast.yaml", root / "pipelines" / "daily.py"
    config.write_text(
        config.read_text().replace("    output: daily\n", "    output: daily\n    chunks_per_job: 1\n", 1)
    )
    code.write_text(code.read_text().replace("    signed =", f"    {_READS_RATES}\n    signed ="))
    (root / "backup").mkdir()
    for folder in (root, root / "backup"):
        (folder / "rates.csv").write_text("day,rate\n")


def died(root: Path, control: ControlPlane) -> str:
    """A run whose process is gone with two of three days staged, and whose lease has ended since."""
    run_id = _planned(control, "2026-01-13", "2026-01-16")
    with closing(DoomedWiring(load_project(root))) as world, suppress(SimulatedCrash), crash_at(_STAGED, 2):
        ControlPlane(world).run(run_id)
    store = control.world.store()
    lease = store.runs.holder(lease_name(run_id))
    assert lease is not None
    store.leases.release(lease)
    return run_id


def failed(root: Path, control: ControlPlane) -> str:
    """A run of two days: before the second one its transform's file went away."""
    run_id = _planned(control, "2026-01-20", "2026-01-22")
    with at_point(_STAGED, (root / "rates.csv").unlink), suppress(ChunkFailed):
        control.run(run_id)
    return run_id


def _planned(control: ControlPlane, start: str, end: str) -> str:
    return control.plan(Request(pipeline="daily", start=start, end=end, reason="refunds", requested_by="ana")).run_id
