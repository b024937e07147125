"""Profiles, environment variables and ${...} change a project without touching its file."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.errors import ConfigError
from backcast.project.config import Project, load_project
from backcast.project.session import session_settings
from tests.unit.projects import GOOD, write

PROFILES = """\
profiles:
  dev: {spark: {master: "local[2]"}}
  prod:
    spark: {conf: {spark.a: b}}
    catalogs: {lake: {uri: "jdbc:sqlite:prod.db"}}
    pipelines:
      daily: {publish: {live: keep}, inputs: {shops: shops}}
  broken:
    spark: {mastr: x}
  empty:
"""
BASE = GOOD + PROFILES


def load(root: Path, profile: str | None = None, yaml: str = BASE, **environ: str) -> Project:
    write(root, {"backcast.yaml": yaml})
    return load_project(root, profile, environ)


def test_a_profile_is_merged_key_by_key(tmp_path: Path) -> None:
    yaml = BASE.replace("shops: {table: lake.shop.shops}", "shops: {table: lake.shop.shops, time: {column: at}}")
    loaded = load(tmp_path, "prod", yaml)
    lake = session_settings(loaded).catalogs["lake"]
    assert lake["uri"].startswith(f"jdbc:sqlite:{tmp_path}/prod.db?")
    assert lake["warehouse"] == f"{tmp_path}/.lake/warehouse", "what the profile does not name stays"
    assert loaded.pipeline("daily").settings.live_policy == "keep"
    assert [each.windowed for each in loaded.pipeline("daily").inputs] == [True, True]
    assert loaded.config.spark.master == "local[*]"


def test_the_profile_comes_from_the_argument_or_the_environment(tmp_path: Path) -> None:
    assert load(tmp_path, "dev").config.spark.master == "local[2]"
    assert load(tmp_path, BACKCAST_PROFILE="dev").config.spark.master == "local[2]"
    assert load(tmp_path, "empty", BACKCAST_PROFILE="dev").config.spark.master == "local[*]"
    assert load(tmp_path).profile is None


def test_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no profile 'prd'; did you mean prod\?"):
        load(tmp_path, "prd")


def test_a_mistake_in_the_chosen_profile_is_named_with_its_own_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"backcast.yaml:25: spark.mastr: unknown key; did you mean master\?"):
        load(tmp_path, "broken")


def test_an_unknown_section_is_found_in_every_profile(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"backcast.yaml:18: profiles.dev.sprak: unknown key; did you mean spark\?"):
        load(tmp_path, yaml=BASE.replace("dev: {spark:", "dev: {sprak:"))


@pytest.mark.parametrize("profiles", ["profiles: [a]", "profiles: {dev: 3}"])
def test_profiles_have_names_and_keys(tmp_path: Path, profiles: str) -> None:
    with pytest.raises(ConfigError, match=r"backcast\.yaml:17: profiles: expected profiles by name"):
        load(tmp_path, yaml=GOOD + profiles)


def test_variables_win_over_profile_and_file(tmp_path: Path) -> None:
    loaded = load(
        tmp_path,
        "prod",
        yaml=BASE.replace("shops: shops", "shops: {dataset: shops}"),
        BACKCAST__SPARK__MASTER="local[1]",
        BACKCAST__SPARK__CONF__SPARK_A="c",
        BACKCAST__PIPELINES__DAILY__CHUNKS_PER_JOB="3",
        BACKCAST__DATASETS__DAILY__KEY="[shop]",
        BACKCAST__DATASETS__EVENTS__TIME="{column: at, kind: date}",
    )
    assert loaded.config.spark.master == "local[1]"
    assert loaded.config.spark.conf == {"spark.a": "c"}, "a key with dots is found"
    assert loaded.pipeline("daily").settings.chunks_per_job == 3
    assert loaded.dataset("daily").key == ("shop",)
    assert loaded.dataset("events").time.column == "at"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("BACKCAST__SPARK__MASTR", "x", "environment variable BACKCAST__SPARK__MASTR: spark.mastr: unknown key"),
        (
            "BACKCAST__PIPELINES__DAILY__CUT",
            "x",
            "BACKCAST__PIPELINES__DAILY__CUT: pipelines.daily.cut: expected one of",
        ),
        ("BACKCAST__NAME__X", "x", "name.x: the key above it holds a value"),
        ("BACKCAST__", "x", "expected a name like BACKCAST__SPARK__MASTER"),
        ("BACKCAST__DATASETS__DAILY__KEY", "[a", "bad YAML"),
    ],
)
def test_a_mistake_in_a_variable_names_the_variable(tmp_path: Path, name: str, value: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, **{name: value})
    assert expected in caught.value.message


@pytest.mark.parametrize(
    ("text", "environ", "expected"),
    [
        ("${M}", {"M": "local[7]"}, "local[7]"),
        ("local[${N}]", {"N": "7"}, "local[7]"),
        ("${M:-local[5]}", {}, "local[5]"),
        ("${M:-local[5]}", {"M": ""}, "local[5]"),
        ("${M:-local[5]}", {"M": "local[7]"}, "local[7]"),
        ("$${M}", {"M": "x"}, "${M}"),
        ("${M}", {"M": "${M}"}, "${M}"),
        ("${file:master.txt}", {}, "local[9]"),
        ("a$b", {}, "a$b"),
    ],
)
def test_expressions_are_filled_in(tmp_path: Path, text: str, environ: dict[str, str], expected: str) -> None:
    (tmp_path / "master.txt").write_text("local[9]\n")
    loaded = load(tmp_path, yaml=GOOD + f"spark: {{master: '{text}'}}\n", **environ)
    assert loaded.config.spark.master == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${M}", "the environment variable M is not set; write ${M:-default} to give a default"),
        ("${M", "expected `}` after `${`"),
        ("${}", "expected ${NAME}, ${NAME:-default} or ${file:path}"),
        ("${a b}", "expected ${NAME}, ${NAME:-default} or ${file:path}"),
        ("${file:nowhere}", "the file 'nowhere' cannot be read as text"),
    ],
)
def test_an_expression_without_a_value_is_an_error(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, yaml=GOOD + f"spark: {{master: '{text}'}}\n")
    assert caught.value.message == f"{tmp_path}/backcast.yaml:17: spark.master: {expected}"


def test_a_profile_that_is_not_chosen_needs_no_variables(tmp_path: Path) -> None:
    yaml = GOOD + "profiles: {prod: {spark: {master: '${MASTER}'}}}\n"
    assert load(tmp_path, yaml=yaml).config.spark.master == "local[*]"
    with pytest.raises(ConfigError, match="MASTER is not set"):
        load(tmp_path, "prod", yaml=yaml)
