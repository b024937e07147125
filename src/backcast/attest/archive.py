"""Files in one archive with one possible form: the same files give the same bytes on every machine.

A zip without compression, so that everybody can open it. Names in order, no clock, no owner, nothing between members:
whatever differs from that form was changed by another hand, and is found by packing the members once more.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping

from backcast.errors import NotVerified, Refused

_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_VERSION = 20
_MADE_BY_UNIX = 3 << 8
_FIRST_DAY = (1 << 5) | 1
"""1980-01-01, the earliest that the format can say."""
_PLAIN_FILE = 0o100644 << 16
_MOST = 2**32 - 1
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def packed(files: Mapping[str, bytes]) -> bytes:
    """The archive. Names must be plain ASCII; more than four gigabytes are refused."""
    body, listing = io.BytesIO(), io.BytesIO()
    for name in sorted(files):
        data, written = files[name], name.encode("ascii")
        if body.tell() + len(data) > _MOST:
            raise Refused("the evidence is larger than 4 GB, which its archive cannot hold")
        told = struct.pack(
            "<HHHHHIIIHH", _VERSION, 0, 0, 0, _FIRST_DAY, zlib.crc32(data), len(data), len(data), len(written), 0
        )
        place = struct.pack("<HHHII", 0, 0, 0, _PLAIN_FILE, body.tell())
        listing.write(_CENTRAL + struct.pack("<H", _MADE_BY_UNIX | _VERSION) + told + place + written)
        body.write(_LOCAL + told + written + data)
    number, start, size = len(files), body.tell(), listing.tell()
    end = _END + struct.pack("<HHHHIIH", 0, 0, number, number, size, start, 0)
    return body.getvalue() + listing.getvalue() + end


def unpacked(archive: bytes) -> dict[str, bytes]:
    """The files. Raises NotVerified when it is not, byte for byte, what `packed` makes of them."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = opened.infolist()
            # Before anything is read: a few bytes that are compressed can fill all memory, whatever size they claim.
            packed_small = any(each.compress_type != zipfile.ZIP_STORED for each in members)
            if packed_small or sum(each.file_size for each in members) > len(archive):
                raise _changed()
            if not all(_PLAIN.fullmatch(each.filename) for each in members):
                raise _changed(": it holds a file that would not stay in its folder")
            files = {each.filename: opened.read(each) for each in members}
        same = packed(files) == archive
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError, EOFError, OSError) as error:
        raise _changed(_named(error)) from error
    if not same:
        raise _changed()
    return files


def _named(error: Exception) -> str:
    """The member that no longer has its checksum, if that is what is wrong."""
    found = re.search(r"Bad CRC-32 for file '([\w.-]+)'", str(error))
    return "" if found is None else f": {found[1]} was changed"


def _changed(what: str = "") -> NotVerified:
    return NotVerified(
        f"the archive is damaged, or was packed by another hand{what}",
        hint="ask for the file as `backcast evidence` wrote it",
    )
