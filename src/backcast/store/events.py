"""A run's history: numbered lines, each bound to the one before by its hash. Lines are added, never changed."""

from __future__ import annotations

import json
import math
from typing import Any

from pydantic import ConfigDict, TypeAdapter
from sqlalchemy import Connection, RowMapping, select, update

from backcast.errors import UnknownName
from backcast.model.document import canonical, sha256
from backcast.model.run import Event
from backcast.store.engine import account, fields, now
from backcast.store.schema import NO_EVENT, events, runs

_ANY: TypeAdapter[Any] = TypeAdapter(Any, config=ConfigDict(ser_json_inf_nan="constants"))

_EXACT = 2**53
"""Beyond this an integer is no longer exact in canonical JSON."""


def plain(value: Any) -> Any:
    """JSON values that have a canonical form: numbers that have none become text."""
    match _ANY.dump_python(value, mode="json", fallback=str):
        case dict() as mapping:
            return {key: plain(each) for key, each in mapping.items()}
        case list() as items:
            return [plain(each) for each in items]
        case str() as words:
            return storable(words)
        case bool() as flag:
            return flag
        case int() as number if abs(number) >= _EXACT:
            return str(number)
        case float() as number if not math.isfinite(number):
            return str(number)
        case other:
            return other


def storable(words: str) -> str:
    """Words of others (a transform's error, a file's name) without what no database and no canonical JSON can hold."""
    return words.encode(errors="replace").decode().replace("\0", "\ufffd")


def text(value: Any) -> str:
    """Canonical JSON as the store keeps it."""
    return canonical(plain(value)).decode()


def fingerprint(event: Event) -> str:
    """The hash that an event must carry: over everything in it but that hash."""
    document = event.as_json()
    del document["sha256"]
    return sha256(canonical(document))


def append(connection: Connection, run_id: str, name: str, data: dict[str, Any]) -> Event:
    """Add the next line, inside the caller's transaction."""
    query = select(runs.c.last_event, runs.c.last_event_sha256).where(runs.c.run_id == run_id)
    last = connection.execute(query).one_or_none()
    if last is None:
        raise UnknownName(f"no run is called {run_id!r}", hint="list runs with `backcast list`", run_id=run_id)
    bare = Event(
        run_id=run_id,
        number=last.last_event + 1,
        at=now(connection),
        name=name,
        data=plain(data),
        previous=last.last_event_sha256,
        sha256="",
        account=account(connection),
    )
    event = bare.model_copy(update={"sha256": fingerprint(bare)})
    connection.execute(events.insert().values({**event.model_dump(), "data": text(event.data)}))
    head = {"last_event": event.number, "last_event_sha256": event.sha256}
    connection.execute(update(runs).where(runs.c.run_id == run_id).values(head))
    return event


def read(connection: Connection, run_id: str, after: int) -> list[Event]:
    """Lines after the given number, in order."""
    query = select(*fields(events, Event)).where(events.c.run_id == run_id, events.c.number > after)
    return [_event(row) for row in connection.execute(query.order_by(events.c.number)).mappings()]


def first_broken(connection: Connection, run_id: str) -> int | None:
    """The number of the first line that was changed, removed or added by another hand; None when the chain holds."""
    expected, previous = 0, NO_EVENT
    lines = select(events).where(events.c.run_id == run_id).order_by(events.c.number)
    for row in connection.execute(lines).mappings():
        expected += 1
        if row["number"] != expected or row["previous"] != previous or not _is_genuine(row):
            return expected
        previous = row["sha256"]
    head = connection.execute(select(runs.c.last_event, runs.c.last_event_sha256).where(runs.c.run_id == run_id)).one()
    if head.last_event > expected:
        return expected + 1
    return None if (head.last_event, head.last_event_sha256) == (expected, previous) else expected


def _event(row: RowMapping) -> Event:
    return Event.model_validate({**row, "data": json.loads(row["data"])})


def _is_genuine(row: RowMapping) -> bool:
    """Also False when only the spelling of the data changed and not its meaning."""
    try:
        event = _event(row)
        return event.sha256 == fingerprint(event) and row["data"] == text(event.data)
    except (TypeError, ValueError):
        return False
