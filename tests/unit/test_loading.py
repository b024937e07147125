"""User code is loaded from the project, fresh, and every way it can fail names file and line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from backcast.errors import BackcastError, ConfigError, InvalidRequest
from backcast.project.loading import load_transform
from tests.unit.projects import GOOD, TRANSFORM, project, write

SQL = GOOD.replace("transform: pipelines.daily:daily", "sql: models/daily.sql")


def failure(root: Path, module: str, yaml: str = GOOD) -> BackcastError:
    with pytest.raises(BackcastError) as caught:
        load_transform(project(root, yaml, daily=module), "daily")
    return caught.value


def test_a_function_is_loaded_with_the_files_behind_it(tmp_path: Path) -> None:
    loaded = load_transform(project(tmp_path), "daily")
    assert (loaded.reference, loaded.version) == ("pipelines.daily:daily", "1.0.0")
    assert list(loaded.files) == ["pipelines/daily.py"]


def test_a_function_without_decorator_is_a_transform_too(tmp_path: Path) -> None:
    loaded = load_transform(project(tmp_path, daily="def daily(inputs, ctx): ..."), "daily")
    assert loaded.version == "1.0.0"


def test_a_module_that_is_not_there_is_named_with_the_line_of_the_yaml(tmp_path: Path) -> None:
    yaml = GOOD.replace("pipelines.daily:daily", "pipelines.dayly:daily")
    error = failure(tmp_path, TRANSFORM, yaml)
    assert isinstance(error, ConfigError)
    assert "backcast.yaml:13: pipelines.daily.transform: no module pipelines.dayly" in error.message
    assert "expected a file pipelines/dayly.py" in error.message


def test_a_function_that_is_not_there_comes_with_the_nearest_one(tmp_path: Path) -> None:
    error = failure(tmp_path, "def dayly(inputs, ctx): ...")
    assert "backcast.yaml:13: pipelines.daily.transform: pipelines.daily has no function 'daily'" in error.message
    assert error.message.endswith("did you mean dayly?")


@pytest.mark.parametrize("module", ["daily = 3", "class daily: ..."])
def test_something_that_is_no_function_is_refused(tmp_path: Path, module: str) -> None:
    assert "expected pipelines.daily:daily to be a function" in failure(tmp_path, module).message


@pytest.mark.parametrize(
    "module", ["def daily(inputs): ...", "def daily(a, b, c): ...", "def daily(*, inputs, ctx): ..."]
)
def test_a_function_must_take_inputs_and_context(tmp_path: Path, module: str) -> None:
    assert "to take two arguments, (inputs, ctx)" in failure(tmp_path, module).message


def test_versions_in_yaml_and_code_must_agree(tmp_path: Path) -> None:
    error = failure(tmp_path, TRANSFORM.replace("1.0.0", "1.1.0"))
    assert isinstance(error, ConfigError)
    assert "backcast.yaml:14: pipelines.daily.version: 1.0.0 here, but 1.1.0 in the decorator" in error.message


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (
            "\nraise ValueError('no luck')",
            "pipelines/daily.py:2: importing pipelines.daily failed: ValueError: no luck",
        ),
        ("def daily(:", "pipelines/daily.py:1: importing pipelines.daily failed: SyntaxError: invalid syntax"),
        (
            "import not_installed_anywhere",
            "pipelines/daily.py:1: importing pipelines.daily failed: ModuleNotFoundError",
        ),
        ("import sys\nsys.exit(3)", "pipelines/daily.py:2: importing pipelines.daily failed: SystemExit: 3"),
        (
            "from pipelines.helper import x",
            "pipelines/helper.py:1: importing pipelines.daily failed: ZeroDivisionError",
        ),
    ],
)
def test_an_import_that_raises_is_named_with_its_own_line(tmp_path: Path, module: str, expected: str) -> None:
    write(tmp_path, {"pipelines/helper.py": "x = 1 / 0"})
    error = failure(tmp_path, module)
    assert isinstance(error, InvalidRequest)
    assert error.message.startswith(expected)


def test_code_outside_the_project_is_refused(tmp_path: Path) -> None:
    error = failure(tmp_path, TRANSFORM, GOOD.replace("pipelines.daily:daily", "json:dumps"))
    assert "module json is not part of the project" in error.message


def test_a_changed_module_is_loaded_anew(tmp_path: Path) -> None:
    write(tmp_path, {"pipelines/helper.py": "VALUE = 1"})
    module = "from pipelines import helper\ndef daily(inputs, ctx): return helper.VALUE"
    loaded = project(tmp_path, daily=module)
    assert load_transform(loaded, "daily").body(None, None) == 1  # type: ignore[arg-type, comparison-overlap]
    write(tmp_path, {"pipelines/helper.py": "VALUE = 2"})
    assert load_transform(loaded, "daily").body(None, None) == 2  # type: ignore[arg-type, comparison-overlap]


def test_two_projects_with_modules_of_the_same_name_do_not_mix(tmp_path: Path) -> None:
    one = project(tmp_path / "one", daily="def daily(inputs, ctx): return 'one'")
    two = project(tmp_path / "two", daily="def daily(inputs, ctx): return 'two'")
    loaded = [load_transform(each, "daily") for each in (one, two, one)]
    assert [each.body(None, None) for each in loaded] == ["one", "two", "one"]  # type: ignore[arg-type, comparison-overlap]


def test_what_a_test_imported_itself_stays_what_it_was(tmp_path: Path) -> None:
    loaded = project(tmp_path, other="STATE = []", daily=TRANSFORM)
    sys.path.insert(0, str(tmp_path))
    try:
        import pipelines.other as mine  # type: ignore[import-not-found]

        load_transform(loaded, "daily")
        assert sys.modules["pipelines.other"] is mine
        assert sys.modules["pipelines"].other is mine
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "pipelines"]:
            del sys.modules[name]


def test_loading_leaves_nothing_in_the_project(tmp_path: Path) -> None:
    loaded = project(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    load_transform(loaded, "daily")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_sql_file_is_a_transform(tmp_path: Path) -> None:
    write(tmp_path, {"models/daily.sql": "SELECT * FROM events;\n"})
    loaded = load_transform(project(tmp_path, SQL), "daily")
    assert loaded.reference == "models/daily.sql"
    assert list(loaded.files) == ["models/daily.sql"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "backcast.yaml:13: pipelines.daily.sql: there is no file models/daily.sql"),
        (b"", "models/daily.sql: expected a query, got an empty file"),
        (b" ;\n", "models/daily.sql: expected a query, got an empty file"),
        (b"\xff", "models/daily.sql cannot be read as text"),
    ],
)
def test_a_sql_file_that_cannot_be_used_is_named(tmp_path: Path, content: bytes | None, expected: str) -> None:
    loaded = project(tmp_path, SQL)
    if content is not None:
        (tmp_path / "models").mkdir()
        (tmp_path / "models/daily.sql").write_bytes(content)
    with pytest.raises(InvalidRequest) as caught:
        load_transform(loaded, "daily")
    assert expected in caught.value.message


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    loaded = project(tmp_path / "shop", SQL)
    write(tmp_path, {"secret.sql": "SELECT 1"})
    (tmp_path / "shop/models").mkdir()
    (tmp_path / "shop/models/daily.sql").symlink_to(tmp_path / "secret.sql")
    with pytest.raises(ConfigError, match="expected a file inside the project"):
        load_transform(loaded, "daily")
