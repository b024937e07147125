"""Documents that leave the process: frozen, strict about unknown keys, with one canonical form and hash."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785
from pydantic import BaseModel, ConfigDict, Field


class Document(BaseModel):
    """Base of every value that is stored, printed as JSON or hashed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values; big integers must already be strings in the document."""
        return self.model_dump(mode="json")

    def canonical(self) -> bytes:
        """RFC 8785 bytes: equal documents have equal bytes on every machine."""
        return canonical(self.as_json())


def later(default: object) -> Any:
    """Marks a field that came after the first release: left out of a document while it has its default, so that
    documents on record keep their bytes and their hash.
    """
    return Field(exclude_if=lambda value: value == default)


def canonical(value: Any) -> bytes:
    """RFC 8785 bytes of plain JSON values."""
    return rfc8785.dumps(value)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
