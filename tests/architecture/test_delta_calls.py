"""Calls into Delta's own classes stand in one module, whose self-check names what it needs of a version."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from backcast.spark.delta.fit import _COMMITTING, _CONSTRUCTOR, _READING

_SOURCE = Path(__file__).parents[2] / "src" / "backcast"
_JVM = _SOURCE / "spark" / "delta" / "jvm.py"
_OTHERS = sorted({*_SOURCE.glob("spark/delta/*.py"), *_SOURCE.glob("targets/delta/*.py")} - {_JVM})
_BEHIND_THE_GATEWAY = re.compile(r"(^|\.)(snapshot|log|transaction)$")
_ITS_OWN = {"fit.py": "looks what a class has", "storage.py": "Hadoop's file system, which is public"}


def _calls(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Methods that are asked of a log, a snapshot or a transaction: py4j gives them no type that mypy could check."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _BEHIND_THE_GATEWAY.search(ast.unparse(node.value)):
            yield node


@pytest.mark.parametrize("path", _OTHERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_log_a_snapshot_and_a_transaction_are_asked_in_one_module_only(path: Path) -> None:
    source = path.read_text()
    assert [ast.unparse(each) for each in _calls(ast.parse(source))] == []
    if path.name not in _ITS_OWN:
        assert not re.search(r"\.java\(|spark\._jvm|\._jdf\b|getattr\(", source)


def test_the_self_check_names_every_method_that_is_called() -> None:
    named = {method for calls in (_READING, _COMMITTING) for found in calls.values() for method in found}
    called = {each.attr for each in _calls(ast.parse(_JVM.read_text()))}
    assert called <= named, f"a version without {sorted(called - named)} would be found out in the middle of a run"
    assert len(called) > 10, "they are found"
    everything = _JVM.read_text()
    assert [each for each in sorted(named - {_CONSTRUCTOR}) if f".{each}(" not in everything] == []
