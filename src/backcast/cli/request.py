"""From typed options to a request. Whatever can be refused without looking at the project is refused here, at once."""

from __future__ import annotations

import getpass
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backcast.errors import InvalidRequest

if TYPE_CHECKING:
    from backcast.cli.options import FixOptions, LimitOptions, ScopeOptions, WhyOptions
    from backcast.model.canary import Canary
    from backcast.model.request import Request
    from backcast.model.scope import ValueClause


def asked_request(
    pipeline: str | None, file: Path | None, scope: ScopeOptions, why: WhyOptions, limits: LimitOptions
) -> Request:
    """From the options, or from a file that says all of it."""
    from backcast.cli.options import NO_LIMITS, NO_REASON, NO_SCOPE

    if file is None:
        if pipeline is None:
            raise InvalidRequest("which pipeline?", hint="name it, or a file with --request FILE")
        return to_request(pipeline, scope, why, limits)
    if pipeline is not None or (scope, why, limits) != (NO_SCOPE, NO_REASON, NO_LIMITS):
        raise InvalidRequest("--request FILE says all of it", hint="leave the pipeline and the other options out")
    from backcast.project.request_file import read_request

    return read_request(file, requested_by=user()).request


def to_request(pipeline: str, scope: ScopeOptions, why: WhyOptions, limits: LimitOptions | None = None) -> Request:
    """Raises InvalidRequest for dates that are none, run backwards, are missing or contradict each other."""
    from backcast.model.request import Kind, Request
    from backcast.model.watermark import WatermarkStrategy

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
        stream=scope.stream,
        as_stream=scope.as_stream,
        watermark=None if scope.watermark is None else WatermarkStrategy(scope.watermark),
        affected=_affected(why.affected),
        kind=Kind(why.kind),
        reason=told(why.reason),
        ticket=told(why.ticket),
        requested_by=user(),
        **_limits(limits),
    )


def _limits(limits: LimitOptions | None) -> dict[str, Any]:
    if limits is None:
        return {}
    from backcast.model.request import MOST
    from backcast.model.time import parse_duration

    for name, value in (("--max-rows", limits.max_rows), ("--max-cost", limits.max_cost)):
        if value is not None and value <= 0:
            raise InvalidRequest(f"{name} {value}: nothing could run then", hint="leave it out, or write more")
        if value is not None and not value <= MOST:
            raise InvalidRequest(f"{name} {value} is no limit", hint="leave it out, or write less")
    try:
        length = None if limits.max_duration is None else parse_duration(limits.max_duration)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"--max-duration: {error}", hint="write 90s, 30m or 12h") from None
    seconds = None if length is None else int(length.total_seconds())
    return {"max_rows": limits.max_rows, "max_cost": limits.max_cost, "max_seconds": seconds}


def _check_window(scope: ScopeOptions, has_days: bool, *, may_be_all: bool) -> None:
    window = scope.start is not None or scope.end is not None
    if window and has_days:
        raise InvalidRequest("--from and --to cannot be mixed with --on or --dates", hint="use one of the two")
    of_topic = [scope.offsets, scope.record_time, scope.checkpoint]
    if not window and not has_days and not any(of_topic) and not may_be_all:
        example = "--from 2025-01-01 --to 2025-02-01, or --on 2025-01-31"
        raise InvalidRequest("which days? the request names none", hint=f"add {example}")
    check_window(scope.start, scope.end)


def check_window(first: str | None, last: str | None) -> None:
    """Of `--from` and `--to`: both or none, and in order."""
    from backcast.model.time import parse_instant

    if first is None and last is None:
        return
    if first is None or last is None:
        missing = "--to" if last is None else "--from"
        raise InvalidRequest(f"{missing} is missing", hint="a window needs --from and --to; --to is exclusive")
    start, end = parse_instant(first, "UTC"), parse_instant(last, "UTC")
    if _has_zone(first) == _has_zone(last):
        _check_order(first, last, empty=start == end, backwards=start > end)


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

    values = picked(where, "--where")
    return tuple(ValueClause(column=column, values=tuple(dict.fromkeys(found))) for column, found in values.items())


def picked(given: tuple[str, ...], option: str) -> dict[str, list[str]]:
    """Columns with the values that were given for them, as COLUMN=VALUE."""
    values: dict[str, list[str]] = {}
    for text in given:
        column, equals, value = text.partition("=")
        if not equals or not column.strip():
            raise InvalidRequest(f"{option} {text!r} is not COLUMN=VALUE", hint=f"for example {option} tenant=T-41")
        values.setdefault(column.strip(), []).append(value)
    return values


def _affected(rows: int | None) -> int | None:
    if rows is not None and rows < 1:
        raise InvalidRequest(f"--affected {rows}: nothing is wrong then", hint="leave it out when nobody has counted")
    return rows


def asked_canary(asked: str) -> Canary:
    """How many chunks go first, or which."""
    from backcast.model.canary import Canary

    if asked.isascii() and asked.isdigit() and len(asked) < 4:
        return Canary(number=int(asked))
    names = tuple(name.strip() for name in asked.split(",") if name.strip())
    if not names:
        raise InvalidRequest(f"--canary {asked!r} names no chunk", hint="write --canary 2, or --canary 2026-01-05")
    return Canary(names=names)


def seconds(text: str, option: str) -> float:
    """`30s`, `5m`, `1h`, `2d`."""
    found = re.fullmatch(r"([1-9]\d{0,5})([smhd])", text)
    if found is None:
        raise InvalidRequest(f"{option}: {text!r} is no duration", hint="write 30s, 5m, 1h or 2d")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86_400}[found[2]]


def asked_why(fix: FixOptions) -> dict[str, Any]:
    """Of a request whose pipeline and scope are found out: what a person says about it."""
    return {"pipeline": "", "reason": told(fix.reason), "ticket": told(fix.ticket), "requested_by": user()}


def told(text: str) -> str:
    """What was typed in another encoding than the terminal's reaches us with bytes that are no text."""
    return text.encode(errors="replace").decode()


def user() -> str:
    """Whoever is logged in."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
