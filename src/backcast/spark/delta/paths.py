"""Paths of files as one spelling: qualified and decoded, so that `/x`, `file:///x` and `a%20b` compare as they should.

A Delta log writes URIs: relative to the table's root or absolute, always encoded. Folders of partitions are encoded
once more by Spark, which is part of their name and stays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|/")


@dataclass(frozen=True, slots=True)
class TableRoot:
    """The folder of a table as an encoded, qualified URI without a slash at its end."""

    uri: str

    def absolute(self, raw: str) -> str:
        """A path of the log as an encoded URI that needs no root."""
        if not _ABSOLUTE.match(raw):
            return f"{self.uri}/{raw}"
        if raw.startswith("/"):
            own = urlsplit(self.uri)
            return f"{own.scheme}://{own.netloc}{raw}" if own.netloc else f"{own.scheme}:{raw}"
        return raw

    def canonical(self, raw: str) -> str:
        """A path of the log in the spelling in which paths are compared and stored."""
        return canonical(self.absolute(raw))

    @property
    def path(self) -> str:
        return canonical(self.uri)

    @property
    def scheme(self) -> str:
        return urlsplit(self.uri).scheme

    def below(self, folder: str) -> TableRoot:
        """The root of a table that lies in a folder of this one; the folder's name must need no encoding."""
        return TableRoot(f"{self.uri}/{folder}")


def by_path(path: str) -> str:
    """The name under which SQL knows the Delta table in that folder."""
    return f"delta.`{path}`"


def canonical(uri: str) -> str:
    """An absolute, encoded URI, decoded: `scheme:/path`, or `scheme://authority/path`."""
    parts = urlsplit(uri)
    path = unquote(parts.path)
    return f"{parts.scheme}://{parts.netloc}{path}" if parts.netloc else f"{parts.scheme}:{path}"
