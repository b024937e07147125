"""Files of an old version that storage no longer has."""

from __future__ import annotations

from backcast.model.scope import Predicate
from backcast.spark.delta.handle import DataFile, DeltaHandle, Version
from backcast.spark.delta.vectors import absolute

_LOOKS = 500
"""So many files are looked for at most. VACUUM takes all that were removed before a time, so some of many tell."""


def lost_file(handle: DeltaHandle, version: str, predicate: Predicate) -> str | None:
    """Only files that the newest version does not have can be gone; mostly there are few of them, or none."""
    head = handle.at()
    if version == head.name:
        return None
    then = handle.at(version)
    # The older one first: what came since is then followed.
    before = _parts(then, then.near(predicate))
    gone = sorted(before - _parts(head, head.near(predicate)))
    storage = handle.jvm.storage(handle.log)
    looked = gone[:: -(-len(gone) // _LOOKS)] if gone else []
    return next((path for path in looked if not storage.exists(path)), None)


def _parts(version: Version, files: dict[str, DataFile]) -> set[str]:
    """Paths of the files and of the deletion vectors that lie beside them."""
    found = set(files)
    for each in files.values():
        vector = absolute(version.root, each.add).get("deletionVector")
        if vector and vector["storageType"] == "p":
            found.add(version.root.canonical(vector["pathOrInlineDv"]))
    return found
