"""A mistake in backcast.yaml is answered with file, line, key and what was expected; several are told together."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.errors import ConfigError
from backcast.project.config import load_project
from tests.unit.projects import GOOD, project

EVENTS = "time: {column: event_time}"
DAILY = "time: {column: day, kind: date, zone: Europe/Berlin}"


def problem(root: Path, old: str, new: str) -> str:
    """The message about GOOD with one piece exchanged."""
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        project(root, GOOD.replace(old, new, 1))
    return caught.value.message


CASES = [
    # wrong values
    ("kind: date", "kind: datum", 9, "datasets.daily.time.kind",
     "expected one of date, timestamp, timestamp_ntz, string, integer, got 'datum'"),
    ("Europe/Berlin", "Europe/Berln", 9, "datasets.daily.time.zone",
     "expected a time zone such as UTC or Europe/Berlin, got 'Europe/Berln'"),
    ("Europe/Berlin", "../etc/passwd", 9, "datasets.daily.time.zone",
     "expected a time zone such as UTC or Europe/Berlin, got '../etc/passwd'"),
    ("kind: date", "kind: string", 9, "datasets.daily.time",
     "a time column of kind string needs a format such as yyyy-MM-dd or epoch_millis"),
    ("kind: date", "kind: string, format: dd-MM-yyyy", 9, "datasets.daily.time",
     "format 'dd-MM-yyyy' does not sort like time: use yyyy, MM, dd, HH, mm, ss in this order"),
    ("kind: date", "kind: date, format: yyyy", 9, "datasets.daily.time", "a time column of kind date takes no format"),
    ("column: day", "column: 'day; DROP TABLE x'", 9, "datasets.daily.time.column",
     "expected a name of letters, digits and _, got 'day; DROP TABLE x'"),
    ("[day, shop]", "[day, 'a b']", 10, "datasets.daily.key[1]", "expected a name of letters, digits and _, got 'a b'"),
    ("[day, shop]", "day", 10, "datasets.daily.key", "expected a list such as [a, b], got 'day'"),
    ("key: [day, shop]", "key: [day, day]", 7, "datasets.daily", "key names a column twice"),
    ("key: [day, shop]", "grain: hour", 7, "datasets.daily", "grain hour is finer than column day can tell (day)"),
    ("key: [day, shop]", "grain: fortnight", 10, "datasets.daily.grain",
     "expected one of hour, day, week, month, year, got 'fortnight'"),
    ("key: [day, shop]", "tolerance: 0.1", 10, "datasets.daily.tolerance",
     "expected a share such as 0.1%, got '0.1'"),
    ("key: [day, shop]", "tolerance: 101%", 10, "datasets.daily.tolerance",
     "expected a share such as 0.1%, got '101%'"),
    ("key: [day, shop]", "partition: {column: day, kind: date}", 7, "datasets.daily",
     "partition names the time column itself: leave it out"),
    ("key: [day, shop]", "partition: {column: d}", 10, "datasets.daily.partition.kind", "required, and missing"),
    ("lake.shop.daily", "daily", 8, "datasets.daily.table",
     "expected catalog.namespace.table, each of letters, digits and _, got 'daily'"),
    ("lake.shop.daily", "lake.shop.`x`", 8, "datasets.daily.table",
     "expected catalog.namespace.table, each of letters, digits and _, got 'lake.shop.`x`'"),
    ("lake.shop.daily", "lake.shop.branch_x", 8, "datasets.daily.table",
     "'branch_x' names a branch, tag or snapshot and no table"),
    ("table: lake.shop.daily", "grain: day", 7, "datasets.daily",
     "expected exactly one of table (catalog.namespace.table) and path (of a Delta table)"),
    ("type: jdbc", "type: jbdc", 3, "catalogs.lake.type",
     "expected one of jdbc, rest, hive, hadoop, delta, got 'jbdc'"),
    ("table: lake.shop.shops", "table: lake.shop.shops, path: lake/shops", 6, "datasets.shops",
     "expected exactly one of table (catalog.namespace.table) and path (of a Delta table)"),
    ("type: jdbc,", "type: delta,", 3, "catalogs.lake.type",
     "a catalog of type delta is Spark's own one: call it spark_catalog"),
    (", warehouse: .lake/warehouse", "", 3, "catalogs.lake", "a catalog of type jdbc needs warehouse"),
    (", warehouse: .lake/warehouse", ", warehose: x, warehouse: y", 3, "catalogs.lake",
     "unknown key 'warehose'; did you mean warehouse?"),
    ("name: shop", "name: my shop", 1, "name",
     "expected a name of letters, digits, - and _ that starts with a letter, got 'my shop'"),
    ("name: shop", "name: [a]", 1, "name", "expected text, got a list"),
    ("name: shop", "name:", 1, "name", "expected text, got nothing"),
    ("name: shop", "name: shop\nstore: postgresql://u:pw@h/db", 2, "store",
     "expected the password as ${NAME} or ${file:path}, or none here and PGPASSWORD or a password file"),
    ("name: shop", "name: shop\nstore: 'postgresql://u:${PW:-pw}@h/db'", 2, "store",
     "expected the password as ${NAME} or ${file:path}, or none here and PGPASSWORD or a password file"),
    ("name: shop", "name: shop\nstore: mysql://u:pw@h/db", 2, "store",
     "expected the path of a SQLite file or postgresql://user@host/database, got an address that begins with mysql://"),
    ("name: shop", "name: shop\nstore: ''", 2, "store",
     "expected the path of a SQLite file or postgresql://user@host/database, got nothing"),
    ("name: shop", "name: shop\nspark: {driver_memory: 4 GB}", 2, "spark.driver_memory",
     "expected memory as Spark writes it, such as 4g or 800m, got '4 GB'"),
    ("name: shop", "name: shop\nspark: {conf: {shuffle: 8}}", 2, "spark.conf",
     "expected names that start with spark., got 'shuffle'"),
    ("name: shop", "name: shop\nspark: {conf: {spark.sql.session.timeZone: Europe/Berlin}}", 2, "spark.conf",
     "spark.sql.session.timeZone is always UTC; zones belong to datasets"),
    ("pipelines.daily:daily", "pipelines/daily.py", 13, "pipelines.daily.transform",
     "expected module:function such as pipelines.daily:daily, got 'pipelines/daily.py'"),
    ("transform: pipelines.daily:daily", "sql: ../daily.sql", 13, "pipelines.daily.sql",
     "expected a .sql file inside the project such as models/daily.sql, got '../daily.sql'"),
    ("transform: pipelines.daily:daily", "cut: widen", 12, "pipelines.daily",
     "expected exactly one of transform (module:function) and sql (a file)"),
    ("output: daily", "output: daily\n    sql: a.sql", 12, "pipelines.daily",
     "expected exactly one of transform (module:function) and sql (a file)"),
    ("output: daily", "output: daily\n    warm_up: {before: 1 day}", 17, "pipelines.daily.warm_up.before",
     "'1 day' is not a duration; write for example 90s, 30m, 12h, 7d or 2w"),
    ("output: daily", "output: daily\n    warm_up: {before: -1d}", 17, "pipelines.daily.warm_up.before",
     "'-1d' is not a duration; write for example 90s, 30m, 12h, 7d or 2w"),
    ("output: daily", "output: daily\n    warm_up: {before: 99999999999999999999d}", 17,
     "pipelines.daily.warm_up.before", "expected at most 3650d, got '99999999999999999999d'"),
    ("output: daily", "output: daily\n    publish: {live: ignore}", 17, "pipelines.daily.publish.live",
     "expected one of fail, keep, restage, freeze, got 'ignore'"),
    ("output: daily", "output: daily\n    publish: {mode: swap}", 17, "pipelines.daily.publish.mode",
     "expected one of replace, append, merge, got 'swap'"),
    ("output: daily", "output: daily\n    chunks_per_job: many", 17, "pipelines.daily.chunks_per_job",
     "expected a whole number, got 'many'"),
    ("output: daily", "output: daily\n    chunks_per_job: 0", 17, "pipelines.daily.chunks_per_job",
     "expected at least 1, got '0'"),
    ("output: daily", "output: daily\n    lineage_columns: maybe", 17, "pipelines.daily.lineage_columns",
     "expected true or false, got 'maybe'"),
    ("inputs: {events: events, shops: {dataset: shops, window: all}}", "inputs: {}", 15, "pipelines.daily.inputs",
     "expected at least one entry, got keys with values"),
    ("inputs: {events: events,", "inputs: {Shops: events,", 12, "pipelines.daily",
     "inputs differ only in upper and lower case, which SQL does not tell apart"),
    ("window: all", "window: half", 15, "pipelines.daily.inputs.shops.window",
     "expected one of output, all, got 'half'"),
    # unknown and missing keys
    ("key: [day", "keys: [day", 10, "datasets.daily.keys", "unknown key; did you mean key?"),
    ("kind: date", "kynd: date", 9, "datasets.daily.time.kynd", "unknown key; did you mean kind?"),
    ("output: daily", "output: daily\n    publish: {undo: 7d}", 17, "pipelines.daily.publish.undo",
     "unknown key; did you mean undo_window?"),
    ("window: all", "windw: all", 15, "pipelines.daily.inputs.shops.windw", "unknown key; did you mean window?"),
    ("pipelines:\n", "pipline:\n", 11, "pipline", "unknown key; did you mean pipelines?"),
    ("name: shop", "zzz: 1\nname: shop", 1, "zzz",
     "unknown key; expected one of catalogs, datasets, name, pipelines, policy, sources, spark, store, streams"),
    ("    version: 1.0.0\n", "", 12, "pipelines.daily.version", "required, and missing"),
    ("column: day, ", "", 9, "datasets.daily.time.column", "required, and missing"),
    # names that lead nowhere
    ("lake.shop.daily", "lak.shop.daily", 8, "datasets.daily.table", "no catalog is called 'lak'; did you mean lake?"),
    ("output: daily", "output: dayly", 16, "pipelines.daily.output",
     "no dataset is called 'dayly'; did you mean daily?"),
    ("output: daily", "output: shops", 16, "pipelines.daily.output",
     "dataset 'shops' has no time column, so it cannot be restated"),
    ("events: events", "events: event", 15, "pipelines.daily.inputs.events",
     "no dataset or source is called 'event'; did you mean events?"),
    (", window: all", "", 15, "pipelines.daily.inputs.shops",
     "dataset 'shops' has no time column: write {dataset: shops, window: all}"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "key", "expected"), CASES)
def test_a_mistake_is_named_with_line_key_and_expectation(
    tmp_path: Path, old: str, new: str, line: int, key: str, expected: str
) -> None:
    assert problem(tmp_path, old, new) == f"{tmp_path}/backcast.yaml:{line}: {key}: {expected}"


BAD_YAML = [
    ("name: shop", "name: shop\n\tstore: x", 2, "bad YAML: a tab; indent with spaces"),
    ("name: shop", "name: shop\nname: again", 2, "name: the key is there twice, first on line 1"),
    ("name: shop", "name: shop\n  x: 1", 2, "bad YAML: mapping values are not allowed here"),
    ("name: shop", "name: 'shop", 0, "bad YAML: "),
    ("name: shop", "name: !!python/object/apply:os.system [x]", 1, "expected"),
    ("name: shop", "name: !secret x", 1, "name: expected a plain value, got the tag !secret"),
    ("name: shop", "name: shop\n? [a, b]\n: 1", 2, "expected a name as key, got a list or mapping"),
    ("name: shop", "name: *unknown", 1, "bad YAML: "),
    ("name: shop", "name: &a [*a]", 1, "bad YAML: "),
    ("name: shop", "name: shop\n---\nname: b", 0, "bad YAML: "),
    ("name: shop", "name: 'a\x07b'", 1, "bad YAML: "),
]


@pytest.mark.parametrize(("old", "new", "line", "expected"), BAD_YAML)
def test_bad_yaml_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, expected: str) -> None:
    message = problem(tmp_path, old, new)
    where = f"{tmp_path}/backcast.yaml:{line}: " if line else f"{tmp_path}/backcast.yaml:"
    assert message.startswith(where)
    assert expected in message


def test_aliases_that_multiply_are_stopped(tmp_path: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "grow without end" in problem(tmp_path, "name: shop", "\n".join([*levels, "name: shop"]))


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_an_empty_file_is_no_project(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="expected a project, got an empty file"):
        project(tmp_path, text)


@pytest.mark.parametrize("text", ["just words", "- a\n- b\n"])
def test_a_file_without_keys_is_no_project(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"backcast\.yaml:1: expected keys such as `name:` at the top"):
        project(tmp_path, text)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "backcast.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(ConfigError, match="byte 6 is not UTF-8"):
        load_project(tmp_path, environ={})


def test_several_mistakes_are_told_together_in_the_order_of_the_file(tmp_path: Path) -> None:
    yaml = (
        GOOD.replace("kind: date", "kind: datum")
        .replace("type: jdbc", "type: x")
        .replace("version: 1.0.0", "vrsion: 1")
    )
    with pytest.raises(ConfigError) as caught:
        project(tmp_path, yaml)
    lines = caught.value.message.splitlines()
    assert lines[0] == "4 problems"
    assert [line.split(":")[1] for line in lines[1:]] == ["3", "9", "12", "14"]
    assert caught.value.attributes["line"] == 3
    assert caught.value.attributes["key"] == "catalogs.lake.type"
    assert caught.value.exit_code == 2
