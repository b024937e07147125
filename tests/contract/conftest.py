"""Contract suites live in the package; their assertions explain themselves like those of the tests here."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("backcast.testing.store_contract", "backcast.testing.ledger_contract")
