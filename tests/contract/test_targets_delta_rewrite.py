"""Delta keeps the contract of targets where commits of exact files are not proven, at the price of writing rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.errors import Refused
from backcast.spark.delta import fit
from backcast.testing.target_contract_publish import PublishContract, RaceContract
from backcast.testing.target_contract_undo import LostAnswerContract, UndoContract
from backcast.testing.target_moves import append, frame, merge, open_stage
from tests.contract.delta_labs import OutsideRewritingLab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TestDeltaRewrites(PublishContract, UndoContract, LostAnswerContract):
    """All sentences about a publish, an undo and a lost answer; of those about races, the one that could break in its
    own way. The rest of `RaceContract` holds too: add it as a base to see it.
    """

    test_one_change_committed_by_two_processes_at_once_lands_once = (
        RaceContract.test_one_change_committed_by_two_processes_at_once_lands_once
    )

    @pytest.fixture
    def lab(
        self, spark: SparkSession, tmp_path: Path, lake_root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> OutsideRewritingLab:
        monkeypatch.setattr(fit, "PROVEN", ("0.0.0",))
        return OutsideRewritingLab(spark, tmp_path / "a b%20=c", templates=lake_root / "templates")

    def test_rows_are_neither_added_nor_merged_where_exact_files_cannot_be_committed(
        self, lab: OutsideRewritingLab
    ) -> None:
        """To write the scope once more would be to write the table once more."""
        target, rows = lab.three_days().target(), frame(lab.spark, [(50, 1, 1.0)])
        stage = open_stage(target)
        for write in (append, merge):
            with pytest.raises(Refused, match="commit exact files, and delta-spark"):
                write(target, stage, rows)
        assert target.history(stage) == ()
