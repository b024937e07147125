"""A plan names cheaper answers than changing history, and only where what was declared shows that there is one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from backcast.model.pipeline import Dataset, InputSpec, PipelineSpec, Relation
from backcast.model.request import Request
from backcast.model.scope import ValueClause
from backcast.model.source import Encoding, Layout, LogSource
from backcast.model.time import Grain
from backcast.plan.instead import instead_findings
from backcast.testing.samples import DAY_COLUMN

OUTPUT = Dataset(name="orders", table="lake.db.orders", time=DAY_COLUMN, grain=Grain.DAY, key=("shop", "id"))
TOPIC = InputSpec("orders", LogSource(name="orders", topic="shop.orders", value=Layout(encoding=Encoding.RAW)))
TABLE = InputSpec("orders", Relation("raw", "lake.db.raw"), windowed=False)
KEYS = (ValueClause(column="shop", values=("S1", "S2")), ValueClause(column="id", values=("1", "2", "3")))


def codes(request: Request, output: Dataset = OUTPUT, rows: int = 10_000, read: InputSpec = TOPIC) -> dict[str, str]:
    spec = PipelineSpec(name="orders", version="1", inputs=(read,), output=output)
    return {each.code: f"{each.reason}; {each.remedy}" for each in instead_findings(request, spec, rows)}


def asked(**options: object) -> Request:
    return Request.model_validate({"pipeline": "orders", **options})


def test_few_keys_or_rows_are_corrected_by_records() -> None:
    assert "no more than 6 keys of orders" in codes(asked(where=KEYS))["instead.correction-records"]
    assert "no more than 1 row of orders" in codes(asked(affected=1))["instead.correction-records"]
    assert "shop.orders" in codes(asked(affected=1))["instead.correction-records"]


@pytest.mark.parametrize(
    ("why", "request_", "read"),
    [
        ("nobody said how many", asked(), TOPIC),
        ("too many to write by hand", asked(affected=101), TOPIC),
        ("only a part of the key", asked(where=KEYS[:1]), TOPIC),
        ("no stream reads a topic", asked(affected=1), TABLE),
    ],
)
def test_otherwise_records_are_no_answer(why: str, request_: Request, read: InputSpec) -> None:
    assert not codes(request_, read=read), why


def test_a_derived_table_is_refreshed() -> None:
    derived = replace(OUTPUT, refresh="dbt run -s orders")
    assert "refresh it instead: dbt run -s orders" in codes(asked(), derived)["instead.refresh"]


def test_an_effect_within_the_tolerance_may_be_accepted() -> None:
    tolerant = replace(OUTPUT, tolerance=0.02)
    told = codes(asked(affected=200), tolerant)["instead.accept"]
    assert "200 rows of 10,000 in scope, and the declared tolerance 2%" in told
    assert "instead.accept" not in codes(asked(affected=201), tolerant)
    assert "instead.accept" not in codes(asked(affected=1), tolerant, rows=0)
    assert "instead.accept" not in codes(asked(), tolerant)
