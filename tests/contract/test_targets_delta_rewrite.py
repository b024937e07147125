"""Delta keeps the contract of targets where commits of exact files are not proven, at the price of writing rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.spark.delta import fit
from backcast.testing.target_contract_publish import PublishContract, RaceContract
from backcast.testing.target_contract_undo import UndoContract
from tests.contract.delta_labs import OutsideRewritingLab

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TestDeltaRewrites(PublishContract):
    """All sentences about a publish, and of the others those that an undo or a race could break in its own way.

    The rest of `UndoContract`, `RaceContract` and `LostAnswerContract` holds too: add them as bases to see it.
    """

    test_one_change_committed_by_two_processes_at_once_lands_once = (
        RaceContract.test_one_change_committed_by_two_processes_at_once_lands_once
    )
    test_a_second_undo_is_refused_by_the_fence_and_by_the_files = (
        UndoContract.test_a_second_undo_is_refused_by_the_fence_and_by_the_files
    )
    test_rows_that_arrive_after_the_decision_to_undo_stay = (
        UndoContract.test_rows_that_arrive_after_the_decision_to_undo_stay
    )

    @pytest.fixture
    def lab(
        self, spark: SparkSession, tmp_path: Path, lake_root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> OutsideRewritingLab:
        monkeypatch.setattr(fit, "PROVEN", ("0.0.0",))
        return OutsideRewritingLab(spark, tmp_path / "a b%20=c", templates=lake_root / "templates")
