"""Typed options become a request; whatever makes no sense is refused before Spark starts."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any, Self, get_args

import pytest

from backcast.cli import working
from backcast.cli.dispatch import dispatch
from backcast.cli.options import KindName
from backcast.model.request import Kind, Request
from backcast.model.scope import ValueClause
from tests.unit.cli_screens import sample_plan


class Child:
    """Stands where a command's Spark child would: keeps what it was asked and answers with a plan."""

    asked: list[tuple[str, dict[str, Any]]]
    refused = False

    def __init__(self, common: object, verb: str, *, dry: bool = False) -> None:
        self.on_stopping = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def call(self, verb: str, arguments: dict[str, Any], on_progress: object) -> Any:
        type(self).asked.append((verb, arguments))
        return sample_plan(refused=self.refused, recorded=arguments["record"]).as_json()


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch) -> type[Child]:
    Child.asked, Child.refused = [], False
    monkeypatch.setattr(working, "SparkChild", Child)
    return Child


def requested(child: type[Child], *options: str) -> Request:
    assert dispatch(["plan", "sla", *options]) == 0
    return Request.model_validate(child.asked[-1][1]["request"])


def test_a_window_with_a_reason(child: type[Child]) -> None:
    request = requested(
        child, "--from", "2025-01-01", "--to", "2026-01-01", "--reason", "bug", "--ticket", "D-1", "--kind", "repair"
    )
    assert (request.pipeline, request.start, request.end) == ("sla", "2025-01-01", "2026-01-01")
    assert (request.reason, request.ticket, request.kind) == ("bug", "D-1", Kind.REPAIR)
    assert request.requested_by


def test_single_days_and_lists_are_joined_sorted_and_counted_once(child: type[Child], tmp_path: Path) -> None:
    listed = tmp_path / "days.txt"
    listed.write_text("2025-03-02  # the outage\n\n# all of it\n2025-03-01\n")
    request = requested(child, "--on", "2025-03-05", "--on", "2025-03-01", "--dates", str(listed))
    assert request.dates == (date(2025, 3, 1), date(2025, 3, 2), date(2025, 3, 5))
    assert requested(child, "--dates", "2025-03-02, 2025-03-01").dates == (date(2025, 3, 1), date(2025, 3, 2))


def test_the_same_column_twice_means_any_of_its_values(child: type[Child]) -> None:
    request = requested(
        child, "--on", "2025-01-01", "--where", "tenant=T-41", "--where", "tenant=T-42", "--where", "note=a=b"
    )
    assert request.where == (
        ValueClause(column="tenant", values=("T-41", "T-42")),
        ValueClause(column="note", values=("a=b",)),
    )


def test_excluded_days(child: type[Child]) -> None:
    request = requested(child, "--from", "2025-01-01", "--to", "2025-02-01", "--exclude", "2025-01-02")
    assert request.exclude == (date(2025, 1, 2),)


def test_a_dry_run_records_nothing(child: type[Child]) -> None:
    requested(child, "--on", "2025-01-01", "--dry-run")
    assert child.asked[-1][1]["record"] is False


def test_a_refused_plan_is_shown_and_exits_with_three(child: type[Child], capsys: pytest.CaptureFixture[str]) -> None:
    child.refused = True
    assert dispatch(["plan", "sla", "--on", "2025-01-01", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["refused"] is True


def test_backfill_does_not_change_a_table_without_being_asked_twice(
    child: type[Child], capsys: pytest.CaptureFixture[str]
) -> None:
    """Without --yes and without a terminal there is nobody to ask, so nothing starts."""
    assert dispatch(["backfill", "sla", "--on", "2025-01-01", "--json"]) == 2
    assert "--yes" in json.loads(capsys.readouterr().out)["error"]["hint"]
    assert child.asked == []


def test_backfill_stops_at_a_refused_plan(child: type[Child]) -> None:
    child.refused = True
    assert dispatch(["backfill", "sla", "--on", "2025-01-01", "--yes"]) == 3
    assert [verb for verb, _ in child.asked] == ["plan"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ((), "which days?"),
        (("--from", "2025-01-01"), "--to is missing"),
        (("--to", "2025-01-01"), "--from is missing"),
        (("--from", "2025-02-01", "--to", "2025-01-01"), "runs backwards"),
        (("--from", "2025-01-01", "--to", "2025-01-01"), "the window is empty"),
        (("--from", "2025-02-30", "--to", "2025-03-05"), "'2025-02-30' is not a date or time"),
        (("--from", "yesterday", "--to", "2025-03-05"), "'yesterday' is not a date or time"),
        (("--on", "2025-02-30"), "'2025-02-30' is not a day"),
        (("--on", "20250201"), "'20250201' is not a day"),
        (("--dates", "2025-01-01,oops"), "'oops' is not a day"),
        (("--dates", ","), "names no day"),
        (("--from", "2025-01-01", "--to", "2025-02-01", "--on", "2025-01-01"), "cannot be mixed"),
        (("--on", "2025-01-01", "--where", "tenant"), "is not COLUMN=VALUE"),
        (("--on", "2025-01-01", "--where", "=x"), "is not COLUMN=VALUE"),
        (("--on", "2025-01-01", "--kind", "wish"), "Choose from"),
    ],
)
def test_requests_that_make_no_sense(
    child: type[Child], capsys: pytest.CaptureFixture[str], options: tuple[str, ...], sentence: str
) -> None:
    """Exit code 2, one sentence on stderr, and no child was started."""
    assert dispatch(["plan", "sla", *options]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error[request.invalid]: ")
    assert sentence in output.err
    assert child.asked == []


def test_the_line_of_a_bad_day_in_a_file_is_named(
    child: type[Child], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "days.txt"
    listed.write_text("2025-03-01\n2025-3-2\n")
    assert dispatch(["plan", "sla", "--dates", str(listed)]) == 2
    assert "line 2 of" in capsys.readouterr().err


def test_the_command_line_knows_every_kind_and_no_other() -> None:
    assert set(get_args(KindName)) == {kind.value for kind in Kind}
