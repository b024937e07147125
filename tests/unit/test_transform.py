"""What transforms are written with is light, strict and repeatable."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

import pytest

import backcast
from backcast.model.states import Execution
from backcast.model.time import Interval
from backcast.project.transform import Context, Inputs, transform_label

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
DAY = Interval(start=MIDNIGHT, end=datetime(2026, 1, 2, tzinfo=UTC))


def context() -> Context:
    return Context("run-1", Execution.BACKFILL, DAY, MIDNIGHT, cast("Any", None))


def inputs(*names: str) -> Inputs:
    return Inputs({name: cast("Any", name.upper()) for name in names})


def test_the_decorator_returns_the_function_itself() -> None:
    def daily(inputs: Any, ctx: Any) -> str:
        return "rows"

    marked = backcast.transform(name="daily", version="1.0")(daily)
    assert marked is daily
    label = transform_label(marked)
    assert label is not None
    assert (label.name, label.version) == ("daily", "1.0")
    assert transform_label(len) is None


@pytest.mark.parametrize("arguments", [{"name": "", "version": "1"}, {"name": "x", "version": 1.0}])
def test_the_decorator_wants_texts(arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="needs a"):
        backcast.transform(**arguments)


def test_writing_a_transform_loads_neither_spark_nor_pydantic() -> None:
    code = (
        "import sys, backcast; backcast.transform(name='a', version='1')(lambda inputs, ctx: None); backcast.Inputs;"
        "print(sorted({'pyspark', 'pydantic', 'sqlalchemy', 'ruamel'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_an_unknown_input_is_named_with_the_nearest_one() -> None:
    known = inputs("events", "shops")
    assert cast("Any", known["events"]) == "EVENTS"
    assert list(known) == ["events", "shops"]
    assert "event" not in known
    assert known.get("event") is None
    with pytest.raises(KeyError) as caught:
        known["event"]
    assert str(caught.value) == "the pipeline has no input called 'event'; did you mean events?"


def test_the_clock_stands_still() -> None:
    assert context().clock() == MIDNIGHT == context().clock()


def test_derived_ids_follow_from_their_parts_alone() -> None:
    ctx = context()
    parts = ("T-41", 7, None, True, Decimal("1.10"), date(2026, 1, 1), MIDNIGHT)
    assert ctx.derive_id(*parts) == "73a6b9ff341b9ff8f413407547b155b0", "the same in every process and version"
    others = [
        ("1",),
        (1,),
        (True,),
        ("a", "b"),
        ("ab",),
        ('a","b',),
        (date(2026, 1, 1),),
        ("2026-01-01",),
        (None,),
        (1.0,),
    ]
    assert len({ctx.derive_id(*each) for each in others}) == len(others)


def test_a_derived_id_does_not_depend_on_how_an_instant_is_written() -> None:
    from zoneinfo import ZoneInfo

    assert context().derive_id(MIDNIGHT) == context().derive_id(MIDNIGHT.astimezone(ZoneInfo("Asia/Tokyo")))


@pytest.mark.parametrize("parts", [(), ([1],), (object(),)])
def test_parts_that_have_no_stable_text_are_refused(parts: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        context().derive_id(*parts)
