"""All mistakes of backcast.yaml are told in one round, each of them once."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.errors import ConfigError
from tests.unit.projects import GOOD, project


def problems(root: Path, *changes: tuple[str, str]) -> list[str]:
    text = GOOD
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    with pytest.raises(ConfigError) as caught:
        project(root, text)
    return [line.partition("backcast.yaml:")[2] for line in str(caught.value.attributes["problems"]).splitlines()]


def test_a_wrong_value_and_a_name_that_leads_nowhere_are_told_together(tmp_path: Path) -> None:
    assert problems(tmp_path, ("kind: date", "kind: datum"), ("output: daily", "output: dayly")) == [
        "9: datasets.daily.time.kind: expected one of date, timestamp, timestamp_ntz, string, integer, got 'datum'",
        "16: pipelines.daily.output: no dataset is called 'dayly'; did you mean daily?",
    ]


def test_what_may_only_follow_from_a_mistake_is_not_told(tmp_path: Path) -> None:
    assert problems(tmp_path, ("time: {column: day,", "tiem: {column: day,")) == [
        "9: datasets.daily.tiem: unknown key; did you mean time?"
    ]


def test_a_password_in_the_file_is_told_beside_other_mistakes_and_not_repeated(tmp_path: Path) -> None:
    found = problems(
        tmp_path, ("name: shop", "name: shop\nstore: postgresql://me:hunter2@db/x"), ("kind: date", "kind: d")
    )
    assert [line.split(": ")[1] for line in found] == ["store", "datasets.daily.time.kind"]
    assert "hunter2" not in "".join(found)


@pytest.mark.parametrize("key", ["spark.wap.id", "spark.wap.branch"])
def test_a_setting_that_would_send_rows_elsewhere_is_refused(tmp_path: Path, key: str) -> None:
    (found,) = problems(tmp_path, ("name: shop", f"name: shop\nspark: {{conf: {{{key}: audit}}}}"))
    assert found == f"2: spark.conf: {key} would send the rows of a run elsewhere than to its stage: leave it out"
