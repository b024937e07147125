"""Contract suites live in the package; their assertions explain themselves like those of the tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.register_assert_rewrite(
    "backcast.testing.ledger_contract",
    "backcast.testing.store_contract",
    "backcast.testing.store_history_contract",
    "backcast.testing.store_opening_contract",
    "backcast.testing.store_stream_contract",
)


@pytest.fixture(params=["sqlite", "postgresql"])
def either_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that is not there yet, on each database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/store.db"
    server = request.getfixturevalue("postgres")
    return str(server.url(server.database()))
