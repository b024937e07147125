"""Publish and undo beside every kind of writer: nothing is lost, or it is refused with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from backcast.control import ControlPlane
from backcast.errors import ScopeChanged, UndoRefused
from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.testing.shop import Shop
from backcast.testing.target_lab import LabTable, Rows, Shape, Writer, day_literal

WINDOW = ("2026-01-03", "2026-01-05")


class Place(StrEnum):
    """Where the writer writes: on a day of the window, or on one after it. Both days have sales of shops S1 and S3."""

    INSIDE = "in scope"
    OUTSIDE = "out of scope"

    @property
    def day(self) -> int:
        return 4 if self is Place.INSIDE else 6


@dataclass(frozen=True, slots=True)
class Expected:
    """What becomes of a publish and of an undo that the writer came before: the reason of a refusal, None if it lands.

    One that lands keeps what the writer did; one that is refused changes nothing.
    """

    publish: str | None
    undo: str | None


_LANDS = Expected(publish=None, undo=None)
_REWRITTEN = Expected(
    publish="arrived and . files? left", undo="published files were since compacted, updated or deleted"
)

_OUTCOMES: Mapping[tuple[Place, Writer], Expected] = {
    (Place.INSIDE, Writer.APPEND): Expected(publish="1 file .1 row. arrived", undo=None),
    (Place.INSIDE, Writer.DELETE): _REWRITTEN,
    (Place.INSIDE, Writer.UPDATE): _REWRITTEN,
    (Place.INSIDE, Writer.MERGE): _REWRITTEN,
    (Place.INSIDE, Writer.OVERWRITE): _REWRITTEN,
    (Place.INSIDE, Writer.COMPACT): Expected(publish=None, undo=_REWRITTEN.undo),
    (Place.OUTSIDE, Writer.APPEND): _LANDS,
    (Place.OUTSIDE, Writer.DELETE): _LANDS,
    (Place.OUTSIDE, Writer.UPDATE): _LANDS,
    (Place.OUTSIDE, Writer.MERGE): _LANDS,
    (Place.OUTSIDE, Writer.OVERWRITE): _LANDS,
    (Place.OUTSIDE, Writer.COMPACT): _LANDS,
}

OUTCOMES: Mapping[TableFormat, Mapping[tuple[Place, Writer], Expected]] = {
    TableFormat.ICEBERG: _OUTCOMES,
    TableFormat.DELTA: _OUTCOMES,
}
"""Both formats take every writer the same way: they differ in how a commit is refused, not in what comes of it."""


def shop_shape(present: str, absent: str) -> Shape:
    """The shop's output as its writers see it."""

    def select(key: str, day: int, value: str) -> str:
        columns = f"{day_literal(day)} AS day, {key} AS shop, 1L AS sales"
        return f"SELECT {columns}, CAST({value} AS DECIMAL(30,2)) AS revenue"

    return Shape(key="shop", value="revenue", present=f"'{present}'", absent=f"'{absent}'", select=select)


BEFORE_PUBLISH, BEFORE_UNDO = shop_shape("S1", "EARLY"), shop_shape("S3", "LATE")


class WriterContract:
    """One writer at two moments of a run: before its publish, and before its undo."""

    @pytest.fixture
    def shop(self) -> Shop:
        """A shop whose output has the format under test. Subclasses override both fixtures."""
        raise NotImplementedError

    @pytest.fixture
    def table(self, shop: Shop) -> LabTable:
        """The shop's output in the hands of its other writers."""
        raise NotImplementedError

    @pytest.mark.parametrize("writer", Writer)
    @pytest.mark.parametrize("place", Place)
    def test_nothing_is_lost_beside_a_writer(self, shop: Shop, table: LabTable, place: Place, writer: Writer) -> None:
        """Whatever it did is there after the publish and after the undo, or these are refused and change nothing."""
        expected = OUTCOMES[shop.format][place, writer]
        if writer is Writer.COMPACT:
            _watched(table, Writer.APPEND, place, shop_shape("S1", "FIRST"))
        control, run_id = _accepted(shop)
        before, wanted = table.rows(), shop.expected(*WINDOW)
        theirs = _watched(table, writer, place, BEFORE_PUBLISH)
        if expected.publish is not None:
            _refused_publish(control, run_id, table, expected.publish)
            control.cancel(run_id)
            control, run_id = _accepted(shop)
            before, wanted, theirs = table.rows(), shop.expected(*WINDOW), Theirs()
        control.publish(run_id)
        assert table.rows() == theirs.applied_to(wanted)

        if writer is Writer.COMPACT:
            theirs += _watched(table, Writer.APPEND, place, shop_shape("S1", "SECOND"))
        theirs += _watched(table, writer, place, BEFORE_UNDO)
        if expected.undo is not None:
            _refused_undo(control, run_id, table, expected.undo)
            return
        control.undo(run_id)
        assert table.rows() == theirs.applied_to(before)


@dataclass(frozen=True, slots=True)
class Theirs:
    """What others did to the table: rows that came and rows that went."""

    came: Rows = field(default_factory=Counter)
    went: Rows = field(default_factory=Counter)

    def __add__(self, later: Theirs) -> Theirs:
        return Theirs(self.came + later.came, self.went + later.went)

    def applied_to(self, rows: Rows) -> Rows:
        return rows + self.came - self.went


def _watched(table: LabTable, writer: Writer, place: Place, shape: Shape) -> Theirs:
    before = table.rows()
    table.somebody(writer, place.day, shape)
    after = table.rows()
    assert (before == after) == (writer is Writer.COMPACT), "the writer did what it is there for"
    return Theirs(came=after - before, went=before - after)


def _accepted(shop: Shop) -> tuple[ControlPlane, str]:
    """A run that waits for its publish."""
    control = shop.open()
    plan = control.plan(shop.request(*WINDOW))
    assert not plan.refused, plan.findings
    assert control.run(plan.run_id).state is RunState.ACCEPTED, control.status(plan.run_id).because
    return control, plan.run_id


def _refused_publish(control: ControlPlane, run_id: str, table: LabTable, reason: str) -> None:
    rows = table.rows()
    with pytest.raises(ScopeChanged, match=reason) as caught:
        control.publish(run_id)
    assert f"backcast cancel {run_id}" in caught.value.hint
    assert table.rows() == rows
    assert control.status(run_id).run.state is RunState.ACCEPTED


def _refused_undo(control: ControlPlane, run_id: str, table: LabTable, reason: str) -> None:
    rows = table.rows()
    with pytest.raises(UndoRefused, match=reason) as caught:
        control.undo(run_id)
    assert "--rewrite" in caught.value.hint
    assert table.rows() == rows
    assert control.status(run_id).run.state is RunState.PUBLISHED
