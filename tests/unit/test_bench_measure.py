"""How promises are measured: in turn, warm, round by round, and with an eye on who else uses the machine."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.testing import postgres
from bench import ledger, measure
from bench.measure import Contender, Sample, alternate, foreign_share, ratios
from bench.promise import QUICK, ratio_result
from bench.tables import Shape

if TYPE_CHECKING:
    import pytest

QUIET = Sample(seconds=1.0, cpu=1.0, foreign=0.0)


def test_contenders_take_turns_and_every_other_round_runs_backwards() -> None:
    calls: list[str] = []
    contenders = {name: Contender(work=lambda name=name: calls.append(name)) for name in ("a", "b")}
    samples = alternate(contenders, rounds=2)
    assert calls == ["a", "b", "b", "a", "a", "b"]
    assert {name: len(each) for name, each in samples.items()} == {"a": 2, "b": 2}, "the warm-up does not count"


def test_what_comes_before_and_after_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    class Watched(measure.Meter):
        def __init__(self) -> None:
            seen.append("measuring")
            super().__init__()

        def sample(self) -> Sample:
            seen.append("measured")
            return super().sample()

    monkeypatch.setattr(measure, "Meter", Watched)
    Contender(
        work=lambda: seen.append("work"), before=lambda: seen.append("before"), after=lambda: seen.append("after")
    ).sample()
    assert seen == ["before", "measuring", "work", "measured", "after"]


def test_ratios_pair_what_was_measured_in_the_same_round() -> None:
    assert ratios([2.0, 30.0], [1.0, 10.0]) == [2.0, 3.0]


def test_a_promise_is_held_by_the_median_of_its_ratios() -> None:
    slow = [replace(QUIET, seconds=seconds) for seconds in (1.1, 9.0, 1.2)]
    result = ratio_result("name", "promise", 1.5, slow, [QUIET] * 3)
    assert (result.held, result.busy, result.verdict) == (True, False, "held")
    assert not ratio_result("name", "promise", 1.15, slow, [QUIET] * 3).held


def test_a_busy_machine_is_named_in_the_verdict() -> None:
    busy = [replace(QUIET, foreign=0.4)] * 3
    result = ratio_result("name", "promise", 1.5, busy, busy)
    assert result.verdict == "held, busy machine"
    assert foreign_share(*busy, replace(QUIET, foreign=None)) == 0.4


def test_without_a_postgresql_server_its_ledger_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres, "_INSTALLED", tmp_path)
    result = ledger.on_postgresql(QUICK)
    assert (result.on, result.verdict, result.held) == ("PostgreSQL", "skipped", False)
    assert result.measured.startswith("no PostgreSQL server")


def test_the_days_of_a_shape_are_the_first_ones_of_each_year() -> None:
    days = Shape(rows=1, days=1_000, years=10).dates()
    assert (len(set(days)), days[0], days[99], days[100]) == (
        1_000,
        date(2017, 1, 1),
        date(2017, 4, 10),
        date(2018, 1, 1),
    )
    assert days == tuple(sorted(days))
