"""The files of one scope at several versions of the live table: listed once, then followed commit by commit.

To list a version is a Spark job over its whole log. Beside a live writer every look at the head would be one, and a
publish that takes longer to look than the writer takes to commit would never end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.spark.delta.bounds import FileBounds
from backcast.spark.delta.commit import read_commit

if TYPE_CHECKING:
    from backcast.model.scope import Predicate
    from backcast.spark.delta.handle import DataFile, Version
    from backcast.spark.delta.jvm import DeltaJvm

_FOLLOW = 200
"""From so many commits on, listing is cheaper than following."""


class ScopeFiles:
    """A version never changes, so what was once found about one is remembered."""

    def __init__(self, jvm: DeltaJvm, scope: Predicate) -> None:
        self._jvm, self._scope = jvm, scope
        self._known: dict[int, dict[str, DataFile]] = {}

    def at(self, version: Version) -> dict[str, DataFile]:
        """Files that can hold matching rows, by path."""
        number = version.number
        if number not in self._known:
            nearest = max((each for each in self._known if each < number), default=None)
            followed = self._follow(nearest, version) if nearest is not None else None
            self._known[number] = version.files(self._scope) if followed is None else followed
        return self._known[number]

    def _follow(self, start: int, version: Version) -> dict[str, DataFile] | None:
        """None when the way is too long, the log has a gap, or the table's layout changed on the way."""
        if version.number - start > _FOLLOW:
            return None
        files, bounds = dict(self._known[start]), FileBounds(version.layout, self._scope)
        for number in range(start + 1, version.number + 1):
            commit = read_commit(self._jvm, version.log, number)
            if commit is None or commit.changes_layout:
                return None
            for each in commit.removes:
                files.pop(version.root.canonical(each["path"]), None)
            found = (version.data_file(each) for each in commit.adds if bounds.may_hold_any(each))
            files |= {each.ref.path: each for each in found}
        return files
