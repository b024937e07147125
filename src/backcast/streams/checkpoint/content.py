"""Whether the bytes of a file are what was written: by Hadoop's checksum beside it, and by its own format."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

from backcast.model.checkpoint_log import newer

_CRC_MAGIC = b"crc\0"
_LZ4_MAGIC = b"LZ4Block"
_LZ4_HEADER = struct.Struct("<BiiI")
_HEADER_SIZE = len(_LZ4_MAGIC) + _LZ4_HEADER.size
_MOST_PIECES = 10_000
_LARGEST_BLOCK = 32 * 1024 * 1024
_SCHEMA_VERSIONS = ("v1", "v2")


class Unsound(Exception):
    """A file that is not what was written, or is newer than what is known.

    `kind`: empty, cut, garbled, sst-missing, newer.
    """

    def __init__(self, kind: str, message: str, file: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.file = file


def checksum_beside(file: Path) -> Path:
    return file.parent / f".{file.name}.crc"


def fits_checksum(file: Path) -> bool | None:
    """None when there is no checksum that could be read: then nobody can tell."""
    try:
        told = checksum_beside(file).read_bytes()
    except OSError:
        return None
    if len(told) < 8 or told[:4] != _CRC_MAGIC:
        return None
    piece = int.from_bytes(told[4:8], "big")
    if not 0 < piece <= _LARGEST_BLOCK:
        return None
    with file.open("rb") as stream:
        for start in range(8, len(told), 4):
            part = stream.read(piece)
            if zlib.crc32(part).to_bytes(4, "big") != told[start : start + 4]:
                return False
        return not stream.read(1)


def check_blocks(file: Path, *, bodies: bool) -> None:
    """A delta, a snapshot or a changelog: blocks of LZ4, and an empty one at the end.

    Spark takes a file that lacks its end for one that ends there. `bodies`: unpack the blocks and compare their
    checksums, too, which takes its time. Another codec than LZ4 cannot be looked into. Raises Unsound.
    """
    with file.open("rb") as stream:
        first = stream.read(len(_LZ4_MAGIC))
        if not first:
            raise Unsound("empty", "it is empty")
        if first != _LZ4_MAGIC:
            if _LZ4_MAGIC.startswith(first):
                raise Unsound("cut", "it ends within its first block")
            if _resembles(first):
                raise Unsound("garbled", "its first bytes are not those of a block")
            return
        stream.seek(0)
        while _block(stream, bodies=bodies):
            pass
        if stream.read(1):
            raise Unsound("garbled", "there are bytes behind its end")


def _resembles(first: bytes) -> bool:
    """Whether a few bytes were changed, as opposed to another codec's beginning."""
    known = (b"\x28\xb5\x2f\xfd", b"\x82SNAPPY\0", b"ZV")
    return not first.startswith(known)


def _block(stream: Any, *, bodies: bool) -> bool:
    """Step over one block; False when it was the last."""
    header = stream.read(_HEADER_SIZE)
    if len(header) < _HEADER_SIZE:
        raise Unsound("cut", "its end is missing")
    token, packed, unpacked, told = _LZ4_HEADER.unpack(header[len(_LZ4_MAGIC) :])
    if not header.startswith(_LZ4_MAGIC) or not 0 <= packed <= _LARGEST_BLOCK or not 0 <= unpacked <= _LARGEST_BLOCK:
        raise Unsound("garbled", "a block in it is none")
    if unpacked == 0:
        if packed or told:
            raise Unsound("garbled", "its last block is none")
        return False
    body = stream.read(packed)
    if len(body) < packed:
        raise Unsound("cut", "it ends within a block")
    if bodies:
        _check_body(body, token & 0xF0, unpacked, told)
    return True


def _check_body(body: bytes, method: int, unpacked: int, told: int) -> None:
    import pyarrow as pa

    try:
        plain = body if method == 0x10 else pa.decompress(body, unpacked, codec="lz4_raw", asbytes=True)
    except (OSError, ValueError, pa.ArrowException):
        raise Unsound("garbled", "a block in it cannot be unpacked") from None
    if len(plain) != unpacked or _xxhash32(plain) & 0x0FFFFFFF != told:
        raise Unsound("garbled", "a block in it does not fit its checksum")


def check_zip(file: Path) -> tuple[tuple[str, int], ...]:
    """A version of RocksDB: name and size of every SST file that it needs from the folder `SSTs`. Raises Unsound."""
    try:
        with zipfile.ZipFile(file) as archive:
            broken = archive.testzip()
            if broken is not None:
                raise Unsound("garbled", f"its part {broken} is damaged")
            text = archive.read("metadata").decode()
        document = json.loads(text.partition("\n")[2])
        return tuple((str(each["dfsSstFileName"]), int(each["sizeBytes"])) for each in document.get("sstFiles", ()))
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, OverflowError):
        raise Unsound("empty" if not file.stat().st_size else "garbled", "it is no complete archive") from None
    except (ValueError, KeyError, TypeError, AttributeError, struct.error):
        raise Unsound("garbled", "its list of files cannot be read") from None


def check_schema(file: Path) -> None:
    """The schema of a store. Raises Unsound."""
    _schema(file.read_bytes())


def key_columns(file: Path) -> int | None:
    """How many columns the keys of a store have that can differ; None when its schema does not tell."""
    try:
        keys, _ = _schema(file.read_bytes())
        return len([each for each in keys["fields"] if each.get("type") != "void"])
    except (OSError, Unsound, LookupError, TypeError, AttributeError):
        return None


def _schema(content: bytes) -> list[Any]:
    """Its version, then keys and values as JSON, in pieces. Raises Unsound."""
    data = io.BytesIO(content)
    try:
        version = _piece(data)
        if version not in _SCHEMA_VERSIONS:
            raise _newer("the schema of the state", version, _SCHEMA_VERSIONS)
        found = []
        for _ in ("keys", "values"):
            pieces = int.from_bytes(_exactly(data, 4), "big") if version == "v2" else 1
            if pieces > _MOST_PIECES:
                raise Unsound("garbled", "it is no schema")
            found.append(json.loads("".join(_piece(data) for _ in range(pieces))))
        return found
    except (ValueError, RecursionError):
        raise Unsound("garbled", "the schema of the state cannot be read") from None


def _newer(what: str, version: str, known: tuple[str, ...]) -> Unsound:
    if not re.fullmatch(r"v\d{1,3}", version):
        return Unsound("garbled", f"{what} begins with {version[:20]!r}, which is no version")
    return Unsound("newer", newer(f"{what}, {version}, is", known))


def _piece(data: io.BytesIO) -> str:
    """As Java's writeUTF has it: the length in two bytes, then the text."""
    return _exactly(data, int.from_bytes(_exactly(data, 2), "big")).decode()


def _exactly(data: io.BytesIO, count: int) -> bytes:
    found = data.read(count)
    if len(found) < count:
        raise Unsound("cut" if data.tell() else "empty", "the schema of the state ends too early")
    return found


_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C
"""What lz4-java begins with."""


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (32 - bits))) & _MASK


def _xxhash32(data: bytes) -> int:
    length, position = len(data), 0
    if length >= 16:
        lanes = [(_SEED + _P1 + _P2) & _MASK, (_SEED + _P2) & _MASK, _SEED, (_SEED - _P1) & _MASK]
        stripes = length // 16
        for words in struct.iter_unpack("<IIII", data[: stripes * 16]):
            lanes = [
                _rotate((lane + word * _P2) & _MASK, 13) * _P1 & _MASK for lane, word in zip(lanes, words, strict=True)
            ]
        position = stripes * 16
        found = sum(_rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    else:
        found = (_SEED + _P5) & _MASK
    found = (found + length) & _MASK
    while position + 4 <= length:
        found = (
            _rotate((found + int.from_bytes(data[position : position + 4], "little") * _P3) & _MASK, 17) * _P4 & _MASK
        )
        position += 4
    for byte in data[position:]:
        found = _rotate((found + byte * _P5) & _MASK, 11) * _P1 & _MASK
    for shift, prime in ((15, _P2), (13, _P3)):
        found = ((found ^ (found >> shift)) * prime) & _MASK
    return found ^ (found >> 16)
