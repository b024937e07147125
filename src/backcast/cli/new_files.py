"""Files that a command writes for people. What is there is never written over."""

from __future__ import annotations

import os
from pathlib import Path

from backcast.errors import InvalidRequest, Unavailable


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """The whole file or none of it, with this mode from its first byte on."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    except FileExistsError:
        raise InvalidRequest(f"{path} exists already", hint="give another name, or move it away") from None
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            # Whatever the umask took away or left: exactly this mode.
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Unavailable(f"{path} could not be written: {error.strerror}", hint="repeat it elsewhere") from error


def read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}") from error
