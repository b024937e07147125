"""Starting is cheap: neither `import backcast` nor `backcast --help` loads Spark, pydantic or SQLAlchemy."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = {"pyspark", "py4j", "pydantic", "sqlalchemy", "alembic", "pandas", "pyarrow", "confluent_kafka", "fastavro"}
REPORT = "import sys; print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"


def run_python(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def loaded(program: str) -> set[str]:
    """Top-level packages that are loaded when the program has run."""
    answer = run_python(f"{program}\n{REPORT}")
    assert answer.returncode == 0, answer.stderr
    return set(answer.stdout.rpartition("LOADED")[2].split())


def help_of(*arguments: str) -> str:
    return f"""
import sys, runpy
sys.argv = ["backcast", {", ".join(map(repr, arguments))}]
try:
    runpy.run_module("backcast", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
"""


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded("import backcast") & HEAVY == set()


@pytest.mark.parametrize("arguments", [("--help",), ("--version",)])
def test_help_and_version_load_nothing_heavy(arguments: tuple[str, ...]) -> None:
    assert loaded(help_of(*arguments)) & HEAVY == set()


def test_a_heavy_import_would_be_seen() -> None:
    assert "pydantic" in loaded("import backcast, backcast.model.document")


def test_public_names_load_on_first_use() -> None:
    names = loaded("import backcast\nfor name in backcast.__all__: getattr(backcast, name)")
    assert "pyspark" not in names


def test_an_unknown_name_is_an_attribute_error() -> None:
    answer = run_python("import backcast; backcast.opne")
    assert answer.returncode == 1
    assert "AttributeError: module 'backcast' has no attribute 'opne'" in answer.stderr
