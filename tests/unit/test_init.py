"""`backcast init` writes a project that loads, and never touches what is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from backcast.errors import InvalidRequest, Unavailable
from backcast.model.pipeline import TableFormat
from backcast.project.config import load_project
from backcast.project.init import init_project, project_name
from backcast.project.loading import load_transform


@pytest.mark.parametrize("table_format", TableFormat)
def test_the_sample_is_a_project_without_a_mistake(tmp_path: Path, table_format: TableFormat) -> None:
    made = init_project(tmp_path / "my.shop", table_format=table_format)
    assert made.kept == ()
    assert set(made.written) == {
        ".gitignore",
        "README.md",
        "backcast.yaml",
        "models/daily.sql",
        "pipelines/__init__.py",
        "pipelines/daily.py",
        "seed.py",
        "tests/test_daily.py",
    }
    for profile in (None, "dev"):
        loaded = load_project(made.root, profile, environ={})
        assert loaded.name == "my-shop"
        assert [load_transform(loaded, name).version for name in loaded.config.pipelines] == ["1.1.0", "1.1.0"]
        by_path = [each.path is not None for each in loaded.config.datasets.values()]
        assert by_path == [table_format is TableFormat.DELTA] * 3
    for file in made.root.rglob("*.py"):
        ast.parse(file.read_text())


def test_files_that_are_there_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/daily.py").write_text("mine too")
    made = init_project(tmp_path)
    assert set(made.kept) == {"README.md", "pipelines/daily.py"}
    assert (tmp_path / "README.md").read_text() == "mine"
    assert (tmp_path / "pipelines/daily.py").read_text() == "mine too"


def test_a_folder_that_holds_a_project_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "backcast.yaml").write_text("mine")
    with pytest.raises(InvalidRequest, match=r"already holds a backcast\.yaml"):
        init_project(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["backcast.yaml"]


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be written"):
        init_project(tmp_path / "file" / "below")


@pytest.mark.parametrize(
    ("folder", "name"), [("shop", "shop"), ("My Shop!", "My-Shop"), ("2026", "shop"), ("--x", "x")]
)
def test_the_project_is_named_after_its_folder(folder: str, name: str) -> None:
    assert project_name(Path("somewhere") / folder) == name
