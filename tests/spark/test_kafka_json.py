"""JSON is read exactly as declared, or the record is quarantined with the field that is to blame."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from backcast.errors import InvalidRequest
from backcast.model.source import Encoding, Lack, Layout, LogSource, Surplus
from backcast.sources.kafka.decode import RAW, decode
from backcast.spark.temporarily import temporarily

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

_SCHEMA = (
    "id BIGINT NOT NULL, n INT, sm SMALLINT, amt DECIMAL(10,2), big DECIMAL(38,18), ts TIMESTAMP, d DATE, "
    "w TIMESTAMP_NTZ, s STRING, x DOUBLE, b BOOLEAN, `odd.name` INT, st STRUCT<t: TIMESTAMP, p: DECIMAL(20,2)>, "
    "arr ARRAY<DECIMAL(10,2)>, m MAP<STRING, DOUBLE>"
)
_WHOLE = "is not one JSON object"
_FIELD = "has a field {} that is not"

_GOOD = {
    '{"id":9223372036854775807}': ("id", 2**63 - 1),
    ' {"id":1,"n":null} \n': ("n", None),
    '{"id":1,"amt":10.12}': ("amt", Decimal("10.12")),
    '{"id":1,"amt":"10.10"}': ("amt", Decimal("10.10")),
    '{"id":1,"amt":1e2}': ("amt", Decimal(100)),
    '{"id":1,"big":12345678901234567890.123456789012345678}': (
        "big",
        Decimal("12345678901234567890.123456789012345678"),
    ),
    '{"id":1,"ts":"2026-01-01T01:00:00.123456789+02:00"}': ("ts", datetime(2025, 12, 31, 23, 0, 0, 123456, UTC)),
    '{"id":1,"ts":"2026-01-01T00:00:00Z"}': ("ts", datetime(2026, 1, 1, tzinfo=UTC)),
    '{"id":1,"d":"2026-02-28"}': ("d", date(2026, 2, 28)),
    '{"id":1,"w":"2026-01-01T00:00:00"}': ("w", datetime(2026, 1, 1)),  # noqa: DTZ001 - a wall clock has no zone
    '{"id":1,"s":7}': ("s", "7"),
    '{"id":1,"s":"10.50"}': ("s", "10.50"),
    '{"id":1,"s":"{\\"a\\":1}"}': ("s", '{"a":1}'),
    '{"id":1,"s":"\N{REPLACEMENT CHARACTER}"}': ("s", "\N{REPLACEMENT CHARACTER}"),
    '{"id":1,"odd.name":3}': ("odd.name", 3),
    '{"id":1,"unknown":{"s":[1,{}]}}': ("s", None),
    '{"id":1,"arr":[1.25,2,null]}': ("arr", [Decimal("1.25"), Decimal(2), None]),
    '{"id":1,"m":{"k":1.5}}': ("m", {"k": 1.5}),
}
_BAD: dict[str | bytes, str] = {
    **dict.fromkeys(
        ["", "not json", "[]", '[{"id":1}]', "5", "null", '"x"', '{"id":1', '{"id":12', '{"id":01}'], _WHOLE
    ),
    **dict.fromkeys(['{"id":1} x', '{"id":1}{"id":2}', '{"id":1},{"id":2}', '{"id":1},"id":{"id":2}'], _WHOLE),
    **dict.fromkeys(['{"id":1}}', "{'id':1}", '{"id":1,}', '{"id":1,"x":NaN}', '{"id":1,"s":"}'], _WHOLE),
    b'{"id":1,"s":"\xff"}': "is not UTF-8",
    **dict.fromkeys(["{}", '{"id":null}', '{"ID":1}', '{"id":1.0}', '{"id":"1"}'], "id"),
    '{"id":9223372036854775808}': "id",
    **dict.fromkeys(['{"id":1,"n":2147483648}', '{"id":1,"n":""}', '{"id":1,"n":true}'], "n"),
    '{"id":1,"sm":40000}': "sm",
    **dict.fromkeys(
        [f'{{"id":1,"amt":{text}}}' for text in ("10.129", "123456789.12", '"1,5"', "99999999.995")], "amt"
    ),
    **dict.fromkeys(['{"id":1,"big":0.1234567890123456789}', '{"id":1,"big":1e-19}'], "big"),
    **dict.fromkeys(
        [f'{{"id":1,"ts":{text}}}' for text in ('"2026-01-01T00:00:00"', "1700000000", "2026", '""')], "ts"
    ),
    **dict.fromkeys([f'{{"id":1,"d":{text}}}' for text in ('"2026-1-1"', '"2026-02-30"', "20000")], "d"),
    **dict.fromkeys([f'{{"id":1,"w":{text}}}' for text in ('"2026-01-01T00:00:00Z"', "1700")], "w"),
    **dict.fromkeys([f'{{"id":1,"s":{text}}}' for text in ('{"a":1}', "[1]", "0.30000000000000000001")], "s"),
    **dict.fromkeys([f'{{"id":1,"x":{text}}}' for text in ("1e400", '"NaN"', '"1.5"')], "x"),
    '{"id":1,"b":"true"}': "b",
    '{"id":1,"odd.name":"x"}': "odd.name",
    **dict.fromkeys([f'{{"id":1,"st":{text}}}' for text in ("5", '{"p":1.555}', '{"t":"never"}', '{"t":5}')], "st"),
    **dict.fromkeys([f'{{"id":1,"arr":{text}}}' for text in ("[1.255]", '[1,"x"]', '{"a":1}')], "arr"),
    **dict.fromkeys([f'{{"id":1,"m":{text}}}' for text in ('{"k":1e400}', '{"k":"x"}', "[]")], "m"),
}


def _decoded(spark: SparkSession, layout: Layout, values: list[str | bytes], key: Layout | None = None) -> list[Row]:
    schema = ", ".join(f"`{name}` {kind}" for name, kind in RAW.items())
    records = [
        ("t", 0, offset, datetime.now(UTC), 0, b'{"k":"x"}', each.encode() if isinstance(each, str) else each, None)
        for offset, each in enumerate(values)
    ]
    source = LogSource(name="t", topic="t", value=layout, **({"key": key} if key else {}))
    frame = decode(spark.createDataFrame(records, schema), source, None, None)
    # A record that is refused may hold a date that Python has no name for.
    shown = [f"if(_status = 'row', `{name}`, NULL) AS `{name}`" for name in frame.columns if not name.startswith("_")]
    rest = [name for name in frame.columns if name.startswith("_")]
    with temporarily(spark, {"spark.sql.ansi.enabled": "true"}):
        return sorted(frame.selectExpr(*shown, *rest).collect(), key=lambda row: row["_kafka"]["offset"])


def test_every_value_is_exact_or_refused_with_its_field(spark: SparkSession) -> None:
    """In one job and in ANSI mode, where a cast that fails would fail the task."""
    texts: list[str | bytes] = [*_GOOD, *_BAD]
    rows = _decoded(spark, Layout(Encoding.JSON, _SCHEMA), texts)
    for text, row in zip(texts, rows, strict=True):
        if isinstance(text, str) and text in _GOOD:
            name, value = _GOOD[text]
            found = row[name].replace(tzinfo=UTC) if name == "ts" else row[name]
            assert (row["_status"], row["_problem"], found) == ("row", None, value), text
        else:
            expected = _BAD[text]
            reason = f"the value {expected if ' ' in expected else _FIELD.format(expected)}"
            assert row["_status"] == "quarantined", text
            assert row["_problem"].startswith(reason), (text, row["_problem"])


def test_missing_and_unknown_fields_follow_the_declared_policy(spark: SparkSession) -> None:
    values: list[str | bytes] = [
        '{"id":1,"n":2}',
        '{"n":2,"id":1}',
        '{"id":1,"n":null}',
        '{"id":1}',
        "{}",
        '{"id":1,"n":2,"z":1.10,"y":"a"}',
        '{"id":1,"n":2,"n":3}',
    ]
    schema = "id BIGINT, n INT"
    strict = _decoded(spark, Layout(Encoding.JSON, schema, surplus=Surplus.REFUSE, lack=Lack.REFUSE), values)
    assert [row["_problem"] for row in strict] == [
        None,
        None,
        None,
        "the value lacks fields: n",
        "the value lacks fields: id, n",
        "the value has fields that are not declared: z, y",
        "the value has fields more than once: n",
    ]
    keep = _decoded(spark, Layout(Encoding.JSON, schema, surplus=Surplus.KEEP), values)
    assert [row["_status"] for row in keep] == ["row"] * 6 + ["quarantined"]
    assert [row["_extra"] for row in keep[:6]] == [None] * 5 + [{"z": "1.1", "y": '"a"'}]


def test_keys_are_decoded_beside_values_and_their_problems_are_told(spark: SparkSession) -> None:
    layout = Layout(Encoding.JSON, "id BIGINT")
    good = _decoded(spark, layout, ['{"id":1}'], key=Layout(Encoding.JSON, "k STRING"))
    assert (good[0]["id"], good[0]["_key"]["k"], good[0]["_status"]) == (1, "x", "row")
    bad = _decoded(spark, layout, ['{"id":1}'], key=Layout(Encoding.JSON, "k INT"))
    assert (bad[0]["_status"], bad[0]["_problem"]) == ("quarantined", "the key has a field k that is not int")


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ("a TINYINT", "field a: JSON is not read into tinyint"),
        ("a STRUCT<b: ARRAY<INTERVAL DAY>>", r"field a\.b\[\]: JSON is not read into interval"),
        ("a MAP<INT, STRING>", "field a: names of fields are the keys of a map"),
        ("a ARRAY<DECIMAL(38,18)>", r"field a\[\]: inside arrays and maps a decimal has at most 32 digits"),
        ("_kafka STRING", "columns of a record cannot be called _kafka"),
    ],
)
def test_types_that_cannot_be_read_exactly_are_refused(spark: SparkSession, schema: str, sentence: str) -> None:
    with pytest.raises(InvalidRequest, match=sentence):
        _decoded(spark, Layout(Encoding.JSON, schema), [])
