"""Files and functions stay small enough to be read in one sitting."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILE_LINES = 400
FUNCTION_LINES = 60


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def long_functions(source: str) -> list[str]:
    functions = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    return [f"{name}: {length} lines" for name, length in lengths.items() if length > FUNCTION_LINES]


@pytest.mark.parametrize("folder", ["src", "tests", "bench"])
def test_no_file_is_longer_than_400_lines(folder: str) -> None:
    lengths = {path.relative_to(ROOT): len(path.read_text().splitlines()) for path in python_files(folder)}
    assert {path: length for path, length in lengths.items() if length > FILE_LINES} == {}


def test_no_function_of_the_product_is_longer_than_60_lines() -> None:
    found = {str(path.relative_to(ROOT)): long_functions(path.read_text()) for path in python_files("src")}
    assert found
    assert {path: names for path, names in found.items() if names} == {}


def test_a_long_function_would_be_found() -> None:
    body = "    pass\n" * FUNCTION_LINES
    assert long_functions(f"def long():\n{body}") == ["long: 61 lines"]
    assert long_functions(f"class Some:\n  async def long(self):\n{body}") == ["long: 61 lines"]
