"""Deletion vectors in add actions: which file holds one, told against a table's folder or without one. Pure.

A table's log names vectors of its own relative to its folder. Whoever takes over a file of another table must say where
its vector lies, and who gives the file back must say it as before: by that spelling alone VACUUM knows the vectors of
a table.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote
from uuid import UUID

from backcast.spark.delta.paths import TableRoot

_RELATIVE, _ABSOLUTE = "u", "p"
_NAME, _ENDING = "deletion_vector_", ".bin"
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""Of Z85, in which the log's protocol writes ids."""
_CODED = 20
"""Digits of a file's id; what stands before them is a folder."""


def absolute(root: TableRoot, add: dict[str, Any]) -> dict[str, Any]:
    """The action of a file of the table in that folder, so that its vector is found from anywhere."""
    vector = add.get("deletionVector")
    if not vector or vector["storageType"] != _RELATIVE:
        return add
    text = vector["pathOrInlineDv"]
    folder, name = text[:-_CODED], f"{_NAME}{_decoded(text[-_CODED:])}{_ENDING}"
    path = root.absolute(f"{quote(folder)}/{name}" if folder else name)
    return {**add, "deletionVector": {**vector, "storageType": _ABSOLUTE, "pathOrInlineDv": path}}


def relative(root: TableRoot, add: dict[str, Any]) -> dict[str, Any]:
    """The action as the table in that folder would write it; as it is when the vector is not the table's own."""
    vector = add.get("deletionVector")
    if not vector or vector["storageType"] != _ABSOLUTE or not vector["pathOrInlineDv"].startswith(f"{root.uri}/"):
        return add
    folder, _, name = vector["pathOrInlineDv"].removeprefix(f"{root.uri}/").rpartition("/")
    if "/" in folder or not (name.startswith(_NAME) and name.endswith(_ENDING)):
        return add
    text = unquote(folder) + _encoded(UUID(name.removeprefix(_NAME).removesuffix(_ENDING)))
    return {**add, "deletionVector": {**vector, "storageType": _RELATIVE, "pathOrInlineDv": text}}


def _decoded(text: str) -> UUID:
    data = b""
    for start in range(0, _CODED, 5):
        number = 0
        for digit in text[start : start + 5]:
            number = number * len(_DIGITS) + _DIGITS.index(digit)
        data += number.to_bytes(4, "big")
    return UUID(bytes=data)


def _encoded(name: UUID) -> str:
    text = ""
    for start in range(0, 16, 4):
        number, part = int.from_bytes(name.bytes[start : start + 4], "big"), ""
        for _ in range(5):
            number, digit = divmod(number, len(_DIGITS))
            part = _DIGITS[digit] + part
        text += part
    return text
