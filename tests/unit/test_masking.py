"""What a driver says about an address is repeated without the secrets in it."""

from __future__ import annotations

import pytest

from backcast.model.masking import without_secrets


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "Failed to connect: jdbc:postgresql://db/lake?user=ana&password=hunter2&ssl=true",
            "Failed to connect: jdbc:postgresql://db/lake?user=***&password=***&ssl=true",
        ),
        ("GET https://ana:hunter2@catalog/v1 failed", "GET https://***@catalog/v1 failed"),
        ("no file abfss://x@account/y?sig=abc", "no file abfss://x@account/y?sig=***"),
        ("column day; key = 3 is null", "column day; key = 3 is null"),
    ],
)
def test_secrets_of_addresses_are_masked_and_other_words_stay(text: str, told: str) -> None:
    assert without_secrets(text) == told
