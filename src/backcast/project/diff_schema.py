"""How rows of a dataset are compared, as `backcast.yaml` says it."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

from backcast.model.diff import Tolerance
from backcast.model.document import Document
from backcast.project.values import Identifier

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


def _tolerance(value: object) -> object:
    """Numbers with a point reach us as they were written."""
    text = str(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else ""
    if _AMOUNT.fullmatch(text) is None:
        raise ValueError(f"expected an amount such as 0.01 or a share such as 1%, got {value!r}")
    return text


class DiffConfig(Document):
    """How far numbers may move without counting as changed: `0.01` is an amount, `1%` a share of the greater value."""

    tolerance: dict[Identifier, Annotated[str, BeforeValidator(_tolerance)]] = Field(default_factory=dict)

    def tolerances(self) -> dict[str, Tolerance]:
        return {name: _parsed(text) for name, text in self.tolerance.items()}


def _parsed(text: str) -> Tolerance:
    found = _AMOUNT.fullmatch(text)
    amount, share = (found[1], found[2]) if found else ("0", "")
    return Tolerance(amount=float(amount) / (100 if share else 1), relative=bool(share))


NO_DIFF_CONFIG = DiffConfig()
