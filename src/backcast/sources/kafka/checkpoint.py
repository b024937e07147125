"""How far a Structured Streaming query has read a topic, from the files of its checkpoint. Nothing is ever written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from backcast.errors import InvalidRequest
from backcast.model.checkpoint_log import Garbled, Planned, SourceOffset, read_committed, read_planned
from backcast.sources.kafka.spelling import spark_offsets

_LOCAL = ("file://", "file:")
_Read = TypeVar("_Read")


def checkpoint_position(folder: str | Path, topic: str) -> dict[int, int]:
    """The next offset of each partition that the query will read: the end of its newest batch that is committed.

    Raises InvalidRequest, which names the file, for a folder that is no checkpoint, a query that has not completed a
    batch or does not read the topic, and files that are missing or garbled.
    """
    root = checkpoint_folder(folder)
    batch = _newest(root)
    _read(root / "commits" / str(batch), "the commit", read_committed)
    file = root / "offsets" / str(batch)
    return position_in(file, planned_batch(file), topic)


def planned_batch(file: Path) -> Planned:
    """What a file of `offsets` says."""
    return _read(file, "the offsets", read_planned)


def position_in(file: Path, plan: Planned, topic: str) -> dict[int, int]:
    """Up to where a batch reads the topic."""
    found = [each for each in plan.sources if _names(each, topic)]
    if not found:
        raise InvalidRequest(f"{file}: the query does not read topic {topic!r}", hint="is it another query's folder?")
    positions = [_literal(file, each, topic) for each in found]
    if any(each != positions[0] for each in positions):
        rows = ", ".join(str(each.line) for each in found)
        raise InvalidRequest(f"{file}: lines {rows} read topic {topic!r} up to different offsets", hint="give offsets")
    return positions[0]


_RESTART = "start the query again so that it can repair it, or give offsets instead"


def checkpoint_folder(folder: str | Path) -> Path:
    """Raises InvalidRequest for a folder of elsewhere, and for one that is no checkpoint."""
    text = str(folder)
    for prefix in _LOCAL:
        if text.startswith(prefix):
            return _folder(Path(text.removeprefix(prefix)))
    if "://" in text:
        hint = "copy its folders `offsets` and `commits` here and name the copy"
        raise InvalidRequest(f"{text}: only checkpoints on a local disk can be read", hint=hint)
    return _folder(Path(text).expanduser())


def _folder(root: Path) -> Path:
    if not (root / "offsets").is_dir():
        hint = "name the folder that the query has as checkpointLocation"
        raise InvalidRequest(f"{root} is no checkpoint: it has no folder `offsets`", hint=hint)
    return root


def _newest(root: Path) -> int:
    """The newest committed batch. One that is planned only may be read again, up to the same end."""
    commits = root / "commits"
    names = [each.name for each in commits.iterdir()] if commits.is_dir() else []
    # Beside them lie checksums and files that are being written.
    batches = [int(name) for name in names if name.isascii() and name.isdigit()]
    if not batches:
        raise InvalidRequest(f"{root}: the query has not completed a batch yet", hint="give offsets or `earliest`")
    return max(batches)


def _read(file: Path, what: str, read: Callable[[str], _Read]) -> _Read:
    try:
        return read(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidRequest(f"{file}: {what} of a completed batch are not there", hint=_RESTART) from None
    except Garbled as error:
        place = f"{file}, line {error.line}" if error.line > 2 and error.kind == "json" else str(file)
        raise InvalidRequest(f"{place}: {error}", hint=_RESTART) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file}: it cannot be read: {error}", hint=_RESTART) from error


def _names(source: SourceOffset, topic: str) -> bool:
    """What other kinds of source say need not be read."""
    try:
        document = json.loads(source.text)
    except ValueError:
        return False
    return isinstance(document, dict) and topic in document


def _literal(file: Path, source: SourceOffset, topic: str) -> dict[int, int]:
    place = f"{file}, line {source.line}"
    found = spark_offsets(json.loads(source.text), topic, place)
    literal = {partition: offset for partition, offset in found.items() if isinstance(offset, int)}
    if len(literal) != len(found) or not literal:
        raise InvalidRequest(f"{place}: topic {topic!r} has no literal offsets", hint=_RESTART)
    return dict(sorted(literal.items()))
