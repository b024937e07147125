"""Kill a live stream at random points, many times: `python -m tests.crash.stream_soak --kills 20 --on delta`.

Without a format on each in turn. Exit code 1 when a record is lost or doubled, or a death looks like none: then the
folder is kept.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
import traceback
from pathlib import Path

from backcast.faults import STREAM_POINTS
from backcast.model.pipeline import TableFormat
from backcast.spark.session import open_session
from backcast.spark.settings import SessionSettings, embedded_catalog
from backcast.spark.versions import Package
from backcast.testing.kafka import kafka_broker
from backcast.testing.orders import Orders
from tests.crash.stream_life import StreamLife, kills


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.stream_soak")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--on", type=TableFormat, choices=list(TableFormat), help="only this format; else each in turn")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    for each in [asked.on] if asked.on else list(TableFormat):
        print(f"{each}: {asked.kills} kills, seed {asked.seed}", flush=True)
        folder = Path(tempfile.mkdtemp(prefix="backcast-soak-"))
        try:
            soak(folder, each, asked.kills, random.Random(asked.seed))  # noqa: S311 - kills, not secrets
        except Exception:  # noqa: BLE001 - whatever it is, it is the anomaly that this looks for
            traceback.print_exc()
            print(f"ANOMALY; look at {folder}")
            return 1
        shutil.rmtree(folder)
    return 0


def soak(root: Path, table_format: TableFormat, times: int, dice: random.Random) -> None:
    """Raises at the first anomaly."""
    with kafka_broker() as broker:
        lake = root / "lake"
        lake.mkdir()
        settings = SessionSettings(
            app_name="soak", master="local[1]", packages=tuple(Package), catalogs={"lake": embedded_catalog(lake)}
        )
        spark = open_session(settings)
        spark.sql("CREATE NAMESPACE lake.soak")
        orders = Orders.create(root / "project", spark, broker, "lake.soak", lake, table_format=table_format)
        orders.configure(stream="most_per_trigger: 50")
        life = StreamLife(orders)
        try:
            for number, kill in zip(range(times), kills(dice), strict=False):
                life.send(dice.randint(1, 100))
                if dice.random() < 0.4:
                    fault = f"{dice.choice(STREAM_POINTS)}:{kill}"
                    print(f"{number + 1:3} {fault}", flush=True)
                    life.die_at(fault)
                else:
                    print(f"{number + 1:3} at random:{kill}", flush=True)
                    life.die_at_random(dice, kill, 4.0)
            print(f"{len(life.sent)} records sent", flush=True)
            life.catch_up()
            life.check()
        finally:
            life.close()
            spark.stop()
    print(f"{len(life.sent)} records, each in the table once", flush=True)


if __name__ == "__main__":
    sys.exit(main())
