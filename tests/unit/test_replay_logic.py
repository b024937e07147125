"""Whether a batch will do for a stream, and what the plan says about it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from backcast.model.finding import Severity
from backcast.model.replay import Difference, Mend, ReplayPin
from backcast.model.watermark import WatermarkStrategy
from backcast.plan.replay import Logic, replay_findings

_JOIN = Difference("a join of two streams meets records from before the window", Mend.WARM_UP)
_STATE = Difference("applyInPandasWithState sees rows in the order of batches", Mend.STATE)
_CLOCK = Difference("current_timestamp is when a batch of the stream ran", Mend.NOTHING)


def test_a_batch_will_do_where_nothing_is_different_and_says_what_neither_gives() -> None:
    plain, clock = Logic.of((), warm=False), Logic.of((_CLOCK,), warm=False)
    assert (plain.different, plain.neither) == ((), ())
    assert (
        plain.same == "its logic gives the same rows as a batch, which sees every row of a window before it is computed"
    )
    assert clock.different == ()
    assert clock.same == f"{plain.same}; but {_CLOCK.because}"


def test_records_from_before_the_window_are_a_difference_unless_a_warm_up_reads_them() -> None:
    cold, warm = (Logic.of((_JOIN,), warm=each) for each in (False, True))
    assert cold.different == (f"{_JOIN.because}, and the pipeline declares no `warm_up` for a batch",)
    assert warm.different == ()
    assert warm.same.startswith("with warm-up its logic gives the same rows as a batch")
    assert warm.same.endswith(_JOIN.because)


def test_a_check_that_a_replay_leaves_out_is_told() -> None:
    def told(strategy: WatermarkStrategy, recompute: int) -> list[tuple[str, Severity]]:
        pin = ReplayPin(stream="live", strategy=strategy, because="a test", batch=3)
        found = replay_findings(pin, (), datetime(2026, 1, 1, tzinfo=UTC), recompute=recompute)
        return [(each.code, each.severity) for each in found if each.code == "replay.not-recomputed"]

    assert told(WatermarkStrategy.SORTED, 2) == [("replay.not-recomputed", Severity.WARN)]
    assert told(WatermarkStrategy.SORTED, 0) == []
    assert told(WatermarkStrategy.BATCH, 2) == []


def test_a_warm_up_is_no_state_and_the_clock_is_told_beside_what_is_different() -> None:
    logic = Logic.of((_STATE, _JOIN, _CLOCK), warm=True)
    assert logic.different == (_STATE.because,)
    assert logic.why == f"{_STATE.because}; {_CLOCK.because}"


def test_a_plan_warns_where_rows_of_the_window_need_records_from_behind_it_and_none_are_read() -> None:
    session = replace(_JOIN, beyond=True)
    logic = Logic.of((_STATE, session, _CLOCK), warm=True)
    assert (logic.beyond, Logic.of((session,), warm=False).beyond, Logic.of((_STATE,), warm=True).beyond) == (1, 1, 0)
    pin = ReplayPin(stream="live", strategy=WatermarkStrategy.BATCH, because="a test", beyond=True)

    def told(replay: ReplayPin, after: timedelta) -> bool:
        found = replay_findings(replay, (), datetime(2026, 1, 1, tzinfo=UTC), after)
        return "replay.cut-end" in {each.code for each in found}

    assert told(pin, timedelta())
    assert not told(pin, timedelta(hours=1))
    assert not told(pin.model_copy(update={"beyond": False}), timedelta())
