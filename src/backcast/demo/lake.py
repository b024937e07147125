"""The sample lake: the project that `backcast init` writes, its tables, and what they must hold."""

from __future__ import annotations

import os
import runpy
import shutil
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.project.config import load_project
from backcast.project.init import init_project
from backcast.project.session import make_folders, session_settings
from backcast.spark.session import open_session
from backcast.spark.versions import Package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[object, ...]
TABLE = "lake.shop.daily"
_EVERYTHING = "SELECT * FROM lake.shop.daily"
FIRST_LIVE_SHOP = 100
"""Shops from here on exist only in rows of the live writer."""
_FOLDER = ".demo"
_MARK = "made-by-backcast-demo"

# Written by hand and not by the pipeline: what the corrected January must be.
_RIGHT = """
    SELECT to_date(event_time), e.shop, city, count(*),
           cast(sum(CASE WHEN kind = 'refund' THEN -amount ELSE amount END) AS decimal(18, 2))
    FROM lake.shop.events AS e JOIN lake.shop.shops AS s ON s.shop = e.shop GROUP BY 1, 2, 3
"""


@dataclass(frozen=True, slots=True)
class Lake:
    """A project folder, a Spark session of its own, and the rows before and after the mending."""

    root: Path
    spark: SparkSession
    wrong: Counter[Row]
    right: Counter[Row]

    @classmethod
    def create(cls, below: Path) -> Lake:
        """A fresh project in `.demo/shop`, made the current folder, with the bug in its data."""
        root = _fresh(below / _FOLDER) / "shop"
        init_project(root)
        os.chdir(root)
        settings = session_settings(load_project(root))
        # The orders of the second act come out of a topic.
        packages = (*settings.packages, Package.KAFKA)
        settings = replace(settings, packages=packages, log_file=root / ".backcast" / "spark.log")
        make_folders(settings)
        spark = open_session(settings)
        runpy.run_path(str(root / "seed.py"))["seed"](spark)
        return cls(root, spark, rows(spark, _EVERYTHING), rows(spark, _RIGHT))

    def now(self) -> Counter[Row]:
        """Every row of the table as a reader sees it."""
        return rows(self.spark, _EVERYTHING)

    def revenue_by_city(self) -> dict[str, str]:
        """January per city, without the live writer's shops."""
        query = f"""SELECT city, format_number(sum(revenue), 2) FROM {TABLE}
            WHERE shop < {FIRST_LIVE_SHOP} GROUP BY city ORDER BY city"""  # noqa: S608 - our own values
        return {str(row[0]): str(row[1]) for row in self.spark.sql(query).collect()}


def rows(spark: SparkSession, query: str) -> Counter[Row]:
    return Counter(tuple(row) for row in spark.sql(query).collect())


def _fresh(folder: Path) -> Path:
    """The folder, empty. Only one that an earlier demo made is removed."""
    if folder.exists():
        if not (folder / _MARK).exists():
            raise InvalidRequest(f"{folder} is there and was not made by the demo", hint="move it away, then repeat")
        shutil.rmtree(folder)
    folder.mkdir()
    (folder / _MARK).touch()
    return folder
