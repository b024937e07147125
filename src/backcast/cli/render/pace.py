"""How far a run is, how fast its chunks are done and how long the rest takes."""

from __future__ import annotations

from typing import Any

from backcast.cli.render.words import clean, count, duration, number, rate


def counted(document: dict[str, Any]) -> str:
    """`12/31 chunks`; empty for a step that has none."""
    return f"{number(document['done'])}/{number(document['total'])} chunks" if document["total"] else ""


def pace(document: dict[str, Any]) -> str:
    """`12,300 rows/s, 2 min left`, from the seconds that staged chunks took; empty as long as nothing is known."""
    done, total, seconds = document["done"], document["total"], document["seconds"]
    if not done or seconds <= 0:
        return ""
    parts = [rate(document["rows"] / seconds)] if document["rows"] else []
    if done < total:
        parts.append(f"{duration(round(seconds / done * (total - done)))} left")
    return ", ".join(parts)


def plain_line(document: dict[str, Any]) -> str:
    """One progress document as a line of a log."""
    # The words of a stream tell its rows themselves.
    rows = count(document["rows"], "row") if document["rows"] and document["step"] != "stream" else ""
    parts = [counted(document), rows, clean(document["message"]), pace(document)]
    told = ", ".join(filter(None, parts))
    return f"{document['step']}: {told}" if told else str(document["step"])
