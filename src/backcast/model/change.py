"""What a stage changes, as far as validation knows without reading anything for it: a diff that costs nothing."""

from __future__ import annotations

from typing import Annotated

from backcast.model.digest import Digest
from backcast.model.document import Document, later
from backcast.model.words import many


class ChunkChange(Document):
    chunk: str
    before: int
    after: int
    """Rows in the base and on the stage."""
    same: bool | None = None
    """Whether they are the same rows, by their digests; None where gates did not ask for those of the base."""
    digests: Annotated[tuple[Digest, Digest] | None, later(None)] = None
    """Of both sides, where they were compared."""


class StageChange(Document):
    """Counts of both sides, by the metadata of their files and by the scans of gates. It tells of no row."""

    before: int
    after: int
    chunks: tuple[ChunkChange, ...] = ()
    """Empty where files say nothing about chunks."""
    rewritten: bool = False
    """Of a merge: rows of the files that it wrote anew, with those that it left as they were."""

    def sentence(self) -> str:
        told = f"{many(self.before, 'row')} became {self.after:,}"
        if self.rewritten:
            return f"{told} in the files that were written anew"
        if not self.before:
            return f"{many(self.after, 'row')} added"
        compared = [chunk for chunk in self.chunks if chunk.same is not None]
        if not compared:
            return told
        other = sum(1 for chunk in compared if not chunk.same)
        return f"{told}, with other rows in {other:,} of {many(len(compared), 'chunk')}"
