"""From typed options to a request. Whatever can be refused without looking at the project is refused here, at once."""

from __future__ import annotations

import getpass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest

if TYPE_CHECKING:
    from backcast.cli.options import ScopeOptions, WhyOptions
    from backcast.model.request import Request
    from backcast.model.scope import ValueClause


def to_request(pipeline: str, scope: ScopeOptions, why: WhyOptions) -> Request:
    """Raises InvalidRequest for dates that are none, run backwards, are missing or contradict each other."""
    from backcast.model.request import Kind, Request

    days = [*(_day(text, "--on") for text in scope.on), *_listed(scope.dates)]
    _check_window(scope, bool(days), may_be_all=why.kind == "bootstrap")
    return Request(
        pipeline=pipeline,
        start=scope.start,
        end=scope.end,
        dates=tuple(sorted(set(days))),
        exclude=tuple(sorted({_day(text, "--exclude") for text in scope.exclude})),
        where=_clauses(scope.where),
        offsets=scope.offsets,
        record_time=scope.record_time,
        checkpoint=scope.checkpoint,
        affected=_affected(why.affected),
        kind=Kind(why.kind),
        reason=told(why.reason),
        ticket=told(why.ticket),
        requested_by=user(),
    )


def _check_window(scope: ScopeOptions, has_days: bool, *, may_be_all: bool) -> None:
    from backcast.model.time import parse_instant

    window = scope.start is not None or scope.end is not None
    if window and has_days:
        raise InvalidRequest("--from and --to cannot be mixed with --on or --dates", hint="use one of the two")
    of_topic = [scope.offsets, scope.record_time, scope.checkpoint]
    if not window and not has_days and not any(of_topic) and not may_be_all:
        example = "--from 2025-01-01 --to 2025-02-01, or --on 2025-01-31"
        raise InvalidRequest("which days? the request names none", hint=f"add {example}")
    if not window:
        return
    if scope.start is None or scope.end is None:
        missing = "--to" if scope.end is None else "--from"
        raise InvalidRequest(f"{missing} is missing", hint="a window needs --from and --to; --to is exclusive")
    start, end = parse_instant(scope.start, "UTC"), parse_instant(scope.end, "UTC")
    if _has_zone(scope.start) == _has_zone(scope.end):
        _check_order(scope.start, scope.end, empty=start == end, backwards=start > end)


def _check_order(start: str, end: str, *, empty: bool, backwards: bool) -> None:
    if backwards:
        raise InvalidRequest(f"the window runs backwards: --from {start} is after --to {end}", hint="swap the two")
    if empty:
        hint = f"--to is exclusive; for one day use --on {start[:10]}"
        raise InvalidRequest(f"the window is empty: --from and --to are both {start}", hint=hint)


def _has_zone(text: str) -> bool:
    return text.endswith("Z") or "+" in text or text.count("-") > 2


def _day(text: str, option: str) -> date:
    try:
        # Python also takes 20250131 and 2025-W05-5; one spelling is enough.
        day = date.fromisoformat(text) if len(text) == len("2025-01-31") else None
    except ValueError:
        day = None
    if day is None or str(day) != text:
        raise InvalidRequest(f"{option}: {text!r} is not a day", hint="write days as 2025-01-31")
    return day


def _listed(dates: str | None) -> list[date]:
    if dates is None:
        return []
    path = Path(dates)
    if path.is_file():
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequest(f"--dates: {dates} cannot be read: {error}") from error
        texts = [line.partition("#")[0].strip() for line in lines]
        found = [_day(text, f"--dates, line {number} of {dates}") for number, text in enumerate(texts, 1) if text]
    else:
        found = [_day(text.strip(), "--dates") for text in dates.split(",") if text.strip()]
    if not found:
        raise InvalidRequest(f"--dates {dates!r} names no day", hint="write 2025-01-30,2025-01-31 or name a file")
    return found


def _clauses(where: tuple[str, ...]) -> tuple[ValueClause, ...]:
    from backcast.model.scope import ValueClause

    values: dict[str, list[str]] = {}
    for text in where:
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            raise InvalidRequest(f"--where {text!r} is not COLUMN=VALUE", hint="for example --where tenant=T-41")
        values.setdefault(column.strip(), []).append(value)
    return tuple(ValueClause(column=column, values=tuple(dict.fromkeys(found))) for column, found in values.items())


def _affected(rows: int | None) -> int | None:
    if rows is not None and rows < 1:
        raise InvalidRequest(f"--affected {rows}: nothing is wrong then", hint="leave it out when nobody has counted")
    return rows


def told(text: str) -> str:
    """What was typed in another encoding than the terminal's reaches us with bytes that are no text."""
    return text.encode(errors="replace").decode()


def user() -> str:
    """Whoever is logged in."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
