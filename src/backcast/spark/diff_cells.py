"""When two values of a column are the same, the same within a tolerance, or the same but for their spelling."""

from __future__ import annotations

from pyspark.sql.types import DataType, IntegralType, MapType, StringType

from backcast.model.diff import Tolerance
from backcast.spark.diff_align import holds, is_number

SAME, TOLERATED, FORMAT_ONLY, CHANGED = range(4)
"""States of a cell; a row has the greatest of its cells'."""

_SLACK = 1 + 1e-9
"""0.30 - 0.29 is a little more than 0.01 in binary."""
_ZONE = "( ?(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?))?"
_ISO = f"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([T ][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}([.][0-9]{{1,9}})?)?)?{_ZONE}$"
_SLASHED = r"^[0-9]{1,2}/[0-9]{1,2}/([0-9]{2}|[0-9]{4})( [0-9]{1,2}:[0-9]{2}(:[0-9]{2})?)?$"
_NUMBER = r"^-?[0-9]+[.][0-9]*0*$"


def state_sql(left: str, right: str, kind: DataType, tolerance: Tolerance | None) -> str:
    """The state of a cell as a number, both sides given as SQL; NULL equals NULL, NaN equals NaN, 0.0 equals -0.0."""
    # Spark compares no maps: those, wherever they hide, come as hashes (`is_hashed`).
    cases = [f"WHEN {left} <=> {right} THEN {SAME}"]
    if tolerance is not None and is_number(kind):
        cases.append(f"WHEN {_near(left, right, kind, tolerance)} THEN {TOLERATED}")
    if isinstance(kind, StringType):
        cases.append(f"WHEN {spelled(left)} = {spelled(right)} THEN {FORMAT_ONLY}")
    return f"CASE {' '.join(cases)} ELSE {CHANGED} END"


def is_hashed(kind: DataType) -> bool:
    """Whether values are compared by a hash of their entries, because Spark cannot compare them."""
    return holds(kind, MapType)


def _near(left: str, right: str, kind: DataType, tolerance: Tolerance) -> str:
    """How far apart they are is subtracted exactly; nothing of it may fail, however great the numbers are."""
    if isinstance(kind, IntegralType):
        # The least number of a type has no positive one of the same type.
        left, right = (f"CAST({each} AS DECIMAL(20, 0))" for each in (left, right))
    distance = f"abs(CAST(try_subtract({left}, {right}) AS DOUBLE))"
    most = f"{tolerance.amount * _SLACK!r}D"
    if tolerance.relative:
        most += f" * greatest(abs(CAST({left} AS DOUBLE)), abs(CAST({right} AS DOUBLE)))"
    return f"coalesce({distance} <= {most}, false)"


def spelled(text: str) -> str:
    """The text in one spelling: a moment as microseconds, a number without trailing zeros, anything else trimmed.

    Case, leading zeros and signs stay: of a postal code or a phone number they are part of the value.
    """
    trimmed = f"trim(BOTH FROM {text})"
    iso = f"try_cast(replace({trimmed}, ' UTC', 'Z') AS TIMESTAMP)"
    slashed = " , ".join(f"try_to_timestamp({trimmed}, '{pattern}')" for pattern in _patterns())
    micros = f"CASE WHEN {trimmed} RLIKE '{_ISO}' THEN unix_micros({iso})"
    micros += f" WHEN {trimmed} RLIKE '{_SLASHED}' THEN unix_micros(coalesce({slashed})) END"
    number = f"CASE WHEN {trimmed} RLIKE '{_NUMBER}' THEN regexp_replace({trimmed}, '[.]?0*$', '') END"
    return f"coalesce('at ' || CAST({micros} AS STRING), {number}, {trimmed})"


def _patterns() -> list[str]:
    """Months first, as in the files of those who write slashes; with two digits of the year before four."""
    return [f"M/d/{year}{time}" for year in ("yyyy", "yy") for time in (" H:mm:ss", " H:mm", "")]
