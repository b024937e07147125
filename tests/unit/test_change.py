"""What validation tells of a change without looking at a row, and what is told where files do not say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backcast.model.digest import EMPTY, Digest
from backcast.model.manifest import Manifest
from backcast.model.scope import Scope
from backcast.model.table import FileRef, NetChange, PublishMode
from backcast.testing.samples import sample_manifest
from backcast.validate.change import change_of

WRITTEN = {"2025-01-01": 10, "2025-01-02": 20, "2025-01-03": 30}


def file(day: int, rows: int, **more: int) -> FileRef:
    return FileRef(f"{day}-{rows}", f"day=2025-01-0{day}", rows=rows, size=1, **more)


NET = NetChange(
    base="1",
    staged="2",
    added=(file(1, 10), file(2, 20), file(3, 30)),
    removed=(file(1, 5), file(1, 4), file(2, 21)),
    outside=(),
)


def planned(mode: PublishMode = PublishMode.REPLACE, *, exact: bool = False) -> Manifest:
    manifest = sample_manifest()
    scope = Scope(windows=manifest.scope.windows, predicate=manifest.scope.predicate, exact=exact)
    settings = manifest.settings.model_copy(update={"publish_mode": mode})
    return manifest.model_copy(update={"settings": settings, "scope": scope})


def test_the_files_that_go_say_how_many_rows_each_chunk_had() -> None:
    found = change_of(planned(), NET, WRITTEN, {}, {})
    assert found is not None
    assert [(each.chunk[-2:], each.before, each.after) for each in found.chunks] == [
        ("01", 9, 10),
        ("02", 21, 20),
        ("03", 0, 30),
    ]
    assert found.sentence() == "30 rows became 60"


def test_digests_that_gates_asked_for_say_which_chunks_have_other_rows() -> None:
    after = {name: Digest(rows=rows, high="1", low="2") for name, rows in WRITTEN.items()}
    before = {**after, "2025-01-03": EMPTY}
    found = change_of(planned(), NET, WRITTEN, before, after)
    assert found is not None
    assert [each.same for each in found.chunks] == [True, True, False]
    assert found.chunks[2].digests == (EMPTY, after["2025-01-03"])
    assert found.sentence() == "30 rows became 60, with other rows in 1 of 3 chunks"


@pytest.mark.parametrize(
    ("manifest", "net", "told"),
    [
        (planned(PublishMode.APPEND), replace(NET, removed=()), "60 rows added"),
        (planned(PublishMode.MERGE), NET, "30 rows became 60 in the files that were written anew"),
        (planned(exact=True), replace(NET, added=(file(1, 70),)), "20 rows became 60"),
    ],
    ids=["append", "merge", "rows of the scope in files that hold others, too"],
)
def test_what_is_told_of_rows_that_are_no_whole_files(manifest: Manifest, net: NetChange, told: str) -> None:
    found = change_of(manifest, net, WRITTEN, {}, {})
    assert found is not None
    assert (found.sentence(), found.chunks) == (told, ())


@pytest.mark.parametrize("unknown", [file(1, 5, deletes=1), file(1, 0)], ids=["deletes apply", "no count on record"])
def test_files_that_do_not_say_how_many_rows_they_hold_tell_nothing(unknown: FileRef) -> None:
    assert change_of(planned(), replace(NET, removed=(unknown,)), WRITTEN, {}, {}) is None
