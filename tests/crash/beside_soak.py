"""A stream and restatements of its table side by side, both killed at random, until the time is up.

    python -m tests.crash.beside_soak --minutes 10 --on delta

Orders keep arriving. All the while nobody who reads the table may miss a row that has landed, or see one twice; in the
end the table must be what plain Python says. Exit code 1 at the first anomaly; its folder is kept.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from pathlib import Path

from backcast.model.pipeline import TableFormat
from backcast.spark.session import open_session
from backcast.spark.settings import SessionSettings, embedded_catalog
from backcast.spark.versions import Package
from backcast.testing.kafka import kafka_broker
from backcast.testing.kafka_topics import wait_until
from backcast.testing.orders import Orders
from tests.crash.beside_orders import Landed, Sender, configure, wanted
from tests.crash.beside_runs import Restating
from tests.crash.beside_stream import Keeper, landed
from tests.crash.witness import Anomaly

_PAUSE = 5.0
_PATIENCE = 1800.0


class Reader(threading.Thread):
    """Looks at the table now and then: every row that has landed is there, once."""

    def __init__(self, orders: Orders, sender: Sender) -> None:
        super().__init__(name="reader", daemon=True)
        self._orders, self._sender = orders, sender
        self._stop_asked = threading.Event()
        self.looks = 0
        self.error: Exception | None = None

    def stop(self) -> None:
        self._stop_asked.set()
        self.join(120)

    def run(self) -> None:
        while not self._stop_asked.wait(_PAUSE):
            try:
                self._look()
            except Exception as error:  # noqa: BLE001 - whoever watches says what it was
                self.error = error
                return

    def _look(self) -> None:
        ends, sent = landed(self._orders), list(self._sender.sent)
        found = Counter(row[0] for row in self._orders.spark.sql(f"SELECT id FROM {self._orders.table}").collect())
        self.looks += 1
        lost = [each.order.id for each in sent if each.is_before(ends) and not found[each.order.id]]
        doubled = [number for number, times in found.items() if times > 1]
        if lost or doubled:
            raise Anomaly(f"a reader misses {sorted(lost)[:10]} and sees twice {sorted(doubled)[:10]}")


def soak(orders: Orders, minutes: float, seed: int) -> str:
    """What was gone through. Raises at the first anomaly."""
    configure(orders)
    sender, keeper = Sender(orders, seed), Keeper(orders, seed + 1)
    reader = Reader(orders, sender)
    runs = Restating(orders, sender, keeper, random.Random(seed + 2))  # noqa: S311 - kills, not secrets
    watched = (sender, keeper, reader)
    try:
        for each in watched:
            each.start()
        wait_until(lambda: bool(landed(orders)), "a first batch has landed", _PATIENCE)
        until = time.monotonic() + 60 * minutes
        while time.monotonic() < until:
            runs.next()
            for each in watched:
                if each.error is not None:
                    raise each.error
        keeper.stop()
        sender.stop()
        reader.stop()
        for each in watched:
            if each.error is not None:
                raise each.error
        keeper.catch_up()
        found, must = orders.rows(), wanted(sender.sent, runs.done, Landed.look(orders))
        if found != must:
            raise Anomaly(f"missing {sorted(must - found)[:8]}, too many {sorted(found - must)[:8]}")
    finally:
        for each in watched:
            each.stop()
        keeper.close()
        runs.close()
    return _told(sender, keeper, reader, runs)


def _told(sender: Sender, keeper: Keeper, reader: Reader, runs: Restating) -> str:
    ended = Counter(f"{each.policy} {'published' if each.published else 'not'}" for each in runs.done)
    kills = sum(each.kills for each in runs.done)
    return (
        f"{len(sender.sent)} records; stream: {keeper.kills} kills in {keeper.lives} lives; {len(runs.done)} runs with"
        f" {kills} kills ({', '.join(f'{number} {name}' for name, number in sorted(ended.items()))});"
        f" {reader.looks} looks"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.beside_soak")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--on", type=TableFormat, choices=list(TableFormat), help="only this format; else each in turn")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    asked = parser.parse_args()
    for each in [asked.on] if asked.on else list(TableFormat):
        folder = Path(tempfile.mkdtemp(prefix="backcast-soak-"))
        print(f"{each}: {asked.minutes:g} minutes, seed {asked.seed}", flush=True)
        lake = folder / "lake"
        lake.mkdir()
        settings = SessionSettings(
            app_name="soak", master="local[1]", packages=tuple(Package), catalogs={"lake": embedded_catalog(lake)}
        )
        spark = open_session(settings)
        try:
            with kafka_broker() as broker:
                spark.sql("CREATE NAMESPACE lake.soak")
                orders = Orders.create(folder / "project", spark, broker, "lake.soak", lake, table_format=each)
                print(f"{each}: {soak(orders, asked.minutes, asked.seed)}", flush=True)
        except Exception:  # noqa: BLE001 - whatever it is, it is the anomaly that this looks for
            traceback.print_exc()
            print(f"ANOMALY; look at {folder}")
            return 1
        finally:
            spark.stop()
        shutil.rmtree(folder)
    print("each record is in the table once, as the last run that read it says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
