"""Explaining how a scope's files moved: commits taken back one by one, from the head towards the base. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from backcast.model.table import LiveCommit


@dataclass(slots=True)
class Walk:
    """Paths by which the state reached so far differs from the base.

    A rewrite that swallowed live rows differs from the base by its own files only. To explain those is not enough: the
    files it consumed must lead back to the base too.
    """

    base: frozenset[str]
    extra: set[str]
    lacking: set[str]
    commits: list[LiveCommit] = field(default_factory=list)
    """Newest first."""
    only_rewrites: bool = True

    @property
    def arrived(self) -> bool:
        return not self.extra and not self.lacking

    def take_back(self, commit: LiveCommit, added: set[str], removed: set[str], *, rewrite: bool) -> None:
        """`added` and `removed` are the commit's files in scope; `rewrite`: it changed no row."""
        self.extra -= added
        self.lacking |= added & self.base
        self.lacking -= removed
        self.extra |= removed - self.base
        self.only_rewrites = self.only_rewrites and rewrite
        self.commits.append(commit)
