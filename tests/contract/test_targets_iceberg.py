"""Iceberg keeps the contract of targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

from backcast.model.pipeline import TableFormat
from backcast.model.table import Forget
from backcast.spark.settings import catalog_conf
from backcast.testing.postgres import PostgresServer
from backcast.testing.shop import Shop
from backcast.testing.target_contract import TargetContract
from backcast.testing.target_contract_publish import PublishContract, RaceContract
from backcast.testing.target_contract_undo import LostAnswerContract, UndoContract
from backcast.testing.target_iceberg import IcebergLab, IcebergTable
from backcast.testing.target_moves import days, frame, open_stage, write
from backcast.testing.target_proxy import Line, line_to
from backcast.testing.target_writers import WriterContract

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TestIcebergTarget(TargetContract):
    """Every sentence of the contract, on a catalog in SQLite."""

    @pytest.fixture
    def lab(self, spark: SparkSession, namespace: str) -> IcebergLab:
        return IcebergLab(spark, namespace)


class TestIcebergBesideWriters(WriterContract):
    """Every writer, in scope and out of it, before publish and before undo."""

    @pytest.fixture
    def shop(self, tmp_path: Path, spark: SparkSession, namespace: str, lake_root: Path) -> Shop:
        return Shop.create(tmp_path, spark, namespace, lake_root, TableFormat.ICEBERG)

    @pytest.fixture
    def table(self, shop: Shop) -> IcebergTable:
        return IcebergTable(shop.spark, shop.revenue)


def catalog_on(postgres: PostgresServer, port: int, spark: SparkSession, warehouse: Path) -> str:
    """The name of a catalog of its own in that server, which is asked through the given port."""
    database = postgres.database()
    properties = {
        "type": "jdbc",
        "uri": f"jdbc:postgresql://127.0.0.1:{port}/{database}",
        "jdbc.user": postgres.user,
        "jdbc.password": postgres.password,
        "jdbc.schema-version": "V1",
        "warehouse": str(warehouse),
    }
    for key, value in catalog_conf({database: properties}).items():
        spark.conf.set(key, value)
    return database


class TestIcebergInPostgresql(PublishContract, UndoContract):
    """Commits of publish and undo, where another database swaps the pointer."""

    @pytest.fixture(scope="class")
    @classmethod
    def catalog(cls, spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> str:
        return catalog_on(postgres, postgres.port, spark, tmp_path_factory.mktemp("in-postgresql"))

    @pytest.fixture
    def lab(self, spark: SparkSession, catalog: str, namespace: str) -> IcebergLab:
        own = f"{catalog}.{namespace.rpartition('.')[2]}"
        spark.sql(f"CREATE NAMESPACE {own}")
        return IcebergLab(spark, own)


class CutLab(IcebergLab):
    """Tables of a catalog in PostgreSQL, behind a line that can be cut."""

    def __init__(self, spark: SparkSession, namespace: str, line: Line) -> None:
        super().__init__(spark, namespace)
        self.line = line

    def table(self, name: str) -> CutTable:
        return CutTable(self.spark, name, self.line)


class CutTable(IcebergTable):
    """The catalog repeats a statement whose answer was lost: the commit has landed, and its repeat is refused."""

    lost_answers: ClassVar[tuple[str, ...]] = ("between the catalog and its database",)

    def __init__(self, spark: SparkSession, name: str, line: Line) -> None:
        super().__init__(spark, name)
        self.line = line

    def elsewhere(self) -> CutTable:
        session, catalog = self.spark.newSession(), self.name.partition(".")[0]
        for key, value in self.spark.conf.getAll.items():
            if key.startswith(f"spark.sql.catalog.{catalog}"):
                session.conf.set(key, value)
        return CutTable(session, self.name, self.line)

    def lost_answer(self, where: str) -> AbstractContextManager[None]:
        assert where in self.lost_answers
        return self.line.lost_commit()


class TestIcebergOnPostgresql(LostAnswerContract, RaceContract):
    """The line to the catalog's database is cut after COMMIT was sent; and commits race for its compare-and-set."""

    @pytest.fixture
    def line(self, postgres: PostgresServer) -> Iterator[Line]:
        with line_to(postgres.host, postgres.port) as line:
            yield line

    @pytest.fixture
    def lab(self, spark: SparkSession, postgres: PostgresServer, line: Line, tmp_path: Path) -> CutLab:
        namespace = f"{catalog_on(postgres, line.port, spark, tmp_path)}.cut"
        spark.sql(f"CREATE NAMESPACE {namespace}")
        return CutLab(spark, namespace, line)

    def test_a_stage_whose_answers_were_lost_is_opened_written_and_discarded_as_if_they_were_not(
        self, lab: CutLab
    ) -> None:
        table = lab.three_days()
        target, files = table.target(), table.data_files()
        with lab.line.lost_commit():
            stage = open_stage(target)
        with lab.line.lost_commit():
            first = write(target, stage, days(1, 1), frame(lab.spark, [(0, 1, 5.0)]))
        with lab.line.lost_commit():
            second = write(target, stage, days(1, 1), frame(lab.spark, [(0, 1, 6.0)]), token=2, exact=True)
        assert target.history(stage)[0] == first
        assert target.history(stage)[-1] == second
        assert target.read(second.version, days(1, 1)).count() == 1
        with lab.line.lost_commit():
            target.forget(Forget(refs=(stage.branch, stage.base_tag), versions=(), branch=stage.branch))
        assert table.traces() == set()
        assert table.data_files() == files
