"""Imports go one way. The contracts stand in pyproject.toml; here they are kept, and each is seen to break."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the sources and contracts in this folder."""
    program = "import sys; sys.path.insert(0, 'src'); from importlinter.cli import lint_imports_command as run; run()"
    command = [sys.executable, "-c", program, "--no-cache", "--no-logo", "--config", str(root / "pyproject.toml")]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_every_contract_is_kept() -> None:
    answer = lint(ROOT)
    assert answer.returncode == 0, answer.stdout
    assert "0 broken" in answer.stdout


@pytest.mark.parametrize(
    ("package", "bad_import"),
    [
        ("plan", "import backcast.store"),
        ("run", "import backcast.targets"),
        ("publish", "import backcast.validate"),
        ("validate", "import backcast.spark.session"),
        ("targets", "import backcast.store"),
        ("sources", "import backcast.plan"),
        ("spark", "import backcast.project"),
        ("store", "import pyspark"),
        ("model", "import sqlalchemy"),
        ("model", "import backcast.ports"),
        ("project", "import backcast.cli"),
        ("testing", "import backcast.cli"),
    ],
)
def test_a_bad_import_is_found(copy: Path, package: str, bad_import: str) -> None:
    (copy / "src" / "backcast" / package / "intruder.py").write_text(bad_import + "\n")
    answer = lint(copy)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert f"backcast.{package}.intruder -> " in answer.stdout


def test_every_package_has_a_place_in_the_layers(copy: Path) -> None:
    """A folder that no contract names would be free to import anything."""
    contracts = (copy / "pyproject.toml").read_text()
    layers = contracts.partition("layers = [")[2].partition("]")[0].replace('"', " ").split()
    top = {path.stem for path in (copy / "src" / "backcast").iterdir() if path.suffix in {"", ".py"}}
    assert {name.strip("(),") for name in layers} - {"|"} >= top - {"__init__", "__main__", "__pycache__"}
