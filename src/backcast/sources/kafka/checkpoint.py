"""How far a Structured Streaming query has read a topic, from the files of its checkpoint. Nothing is ever written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from backcast.errors import InvalidRequest
from backcast.sources.kafka.spelling import spark_offsets

_VERSION = "v1"
_NO_OFFSET = "-"
_LOCAL = ("file://", "file:")


def checkpoint_position(folder: str | Path, topic: str) -> dict[int, int]:
    """The next offset of each partition that the query will read: the end of its newest batch that is committed.

    Raises InvalidRequest, which names the file, for a folder that is no checkpoint, a query that has not completed a
    batch or does not read the topic, and files that are missing or garbled.
    """
    root = checkpoint_folder(folder)
    batch = _newest(root)
    log_lines(root / "commits" / str(batch), "the commit")
    file = root / "offsets" / str(batch)
    return positions(file, log_lines(file, "the offsets"), topic)


def positions(file: Path, lines: list[str], topic: str) -> dict[int, int]:
    """Up to where a file of offsets, without its version line, says that the topic is read."""
    if len(lines) < 2:
        raise InvalidRequest(f"{file}: it ends before the offsets of any source", hint=_RESTART)
    found = [(number, document) for number, document in _sources(file, lines) if topic in document]
    if not found:
        raise InvalidRequest(f"{file}: the query does not read topic {topic!r}", hint="is it another query's folder?")
    positions = [_literal(file, number, document, topic) for number, document in found]
    if any(each != positions[0] for each in positions):
        rows = ", ".join(str(number) for number, _ in found)
        raise InvalidRequest(f"{file}: lines {rows} read topic {topic!r} up to different offsets", hint="give offsets")
    return positions[0]


_RESTART = "start the query again so that it can repair it, or give offsets instead"


def checkpoint_folder(folder: str | Path) -> Path:
    """The folder on this machine. Raises InvalidRequest for what is no checkpoint, or lies elsewhere."""
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


def log_lines(file: Path, what: str) -> list[str]:
    """The file without its version line."""
    try:
        version, *lines = file.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise InvalidRequest(f"{file}: {what} of a completed batch are not there", hint=_RESTART) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{file}: it cannot be read: {error}", hint=_RESTART) from error
    if version != _VERSION:
        said = f"begins with {version[:20]!r}, not {_VERSION}" if version else "is empty"
        raise InvalidRequest(f"{file}: it {said}", hint=_RESTART)
    return lines


def _sources(file: Path, lines: list[str]) -> list[tuple[int, dict[str, Any]]]:
    """By line number, what each source of the query says. What other kinds of source say need not be read."""
    found = []
    for number, line in enumerate(lines[1:], start=3):
        if not line.strip() or line == _NO_OFFSET:
            continue
        try:
            document = json.loads(line)
        except ValueError as error:
            raise InvalidRequest(f"{file}, line {number}: it is not JSON", hint=_RESTART) from error
        if isinstance(document, dict):
            found.append((number, document))
    return found


def _literal(file: Path, number: int, document: dict[str, Any], topic: str) -> dict[int, int]:
    place = f"{file}, line {number}"
    found = spark_offsets(document, topic, place)
    literal = {partition: offset for partition, offset in found.items() if isinstance(offset, int)}
    if len(literal) != len(found) or not literal:
        raise InvalidRequest(f"{place}: topic {topic!r} has no literal offsets", hint=_RESTART)
    return dict(sorted(literal.items()))
