"""What every class of the contract of targets stands on: the lab, and two things that hold for most steps."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from backcast.errors import BackcastError
from backcast.testing.target_lab import Lab, LabTable

_MOST = 40
"""Commits of a busy writer: enough to be beside everything, few enough to end."""


class TargetSuite:
    """Subclasses of the suite override `lab`."""

    @pytest.fixture
    def lab(self) -> Lab:
        """A lab of the adapter's format."""
        raise NotImplementedError


@contextmanager
def metadata_only(table: LabTable) -> Iterator[None]:
    """Whatever happens inside writes no data file, deletes none, and changes no property of the live table.

    A table whose commits write data may write some.
    """
    files, properties = table.data_files(), table.properties()
    yield
    now = table.data_files()
    assert table.writes_data or now - files == set(), "data files were written"
    assert files - now == set(), "data files were deleted"
    assert table.properties() == properties


@contextmanager
def refused(table: LabTable, *errors: type[BackcastError], match: str | None = None) -> Iterator[None]:
    """Whatever happens inside ends in one of these errors, and the live table is as it was."""
    rows = table.rows()
    with metadata_only(table), pytest.raises(errors, match=match):
        yield
    assert table.rows() == rows


@contextmanager
def busy(table: LabTable, day: int, *, first: int = 1_000, most: int = _MOST) -> Iterator[list[int]]:
    """A live writer that commits all the time, in a session of its own; the list collects what landed.

    None of its commits may fail.
    """
    stop, landed, failures = threading.Event(), list[int](), list[Exception]()
    writer = table.elsewhere()

    def work() -> None:
        while not stop.is_set() and len(landed) < most:
            try:
                writer.append((first + len(landed), day, 0.0))
                landed.append(first + len(landed))
            except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
                failures.append(error)
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield landed
    finally:
        stop.set()
        thread.join()
    assert failures == []
