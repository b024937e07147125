"""What every store must notice when another hand changes it. Part of `backcast.testing.store_contract`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from backcast.errors import Unavailable
from backcast.testing.samples import sample_manifest

if TYPE_CHECKING:
    from backcast.store.sql import SqlStore


class HistoryContract:
    """A changed byte in a run's history is found."""

    @pytest.mark.parametrize(
        ("tampering", "broken"),
        [
            ("UPDATE events SET data = replace(data, 'ann', 'bob') WHERE number = 2", 2),
            ("UPDATE events SET data = replace(data, ':', ': ') WHERE number = 2", 2),
            ("UPDATE events SET data = '{' WHERE number = 2", 2),
            ("UPDATE events SET at = at + 1 WHERE number = 3", 3),
            ("UPDATE events SET name = 'state.published' WHERE number = 1", 1),
            ("UPDATE events SET account = 'bob@host-2' WHERE number = 2", 2),
            ("UPDATE events SET sha256 = replace(sha256, substr(sha256, 1, 1), 'x') WHERE number = 3", 3),
            ("DELETE FROM events WHERE number = 2", 2),
            ("DELETE FROM events WHERE number = 4", 4),
            ("DELETE FROM events", 1),
        ],
    )
    def test_tampering_is_found_at_its_first_event(
        self, store: SqlStore, raw: Callable[[str], None], tampering: str, broken: int
    ) -> None:
        run = store.runs.create(sample_manifest())
        for number in range(3):
            store.runs.record(run.run_id, "note", by="ann", number=number)
        assert store.verify_events(run.run_id) is None
        raw(tampering)
        assert store.verify_events(run.run_id) == broken

    def test_a_manifest_that_was_changed_is_refused(self, store: SqlStore, raw: Callable[[str], None]) -> None:
        run = store.runs.create(sample_manifest())
        raw("UPDATE manifests SET document = replace(document, 'bug', 'fix')")
        with pytest.raises(Unavailable, match="was changed"):
            store.runs.manifest(run.run_id)
