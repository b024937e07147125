"""A machine that lacks something gets one sentence that says what, and nothing is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A bin folder with the shell's few tools, Python and a good Java; nothing else is on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "sed", "head", "dirname"):
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    (folder / "python3").symlink_to(sys.executable)
    write_program(folder / "java", """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    return folder


def write_program(path: Path, body: str) -> None:
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def preflight(machine: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(machine), "HOME": os.environ["HOME"]}
    script = str(ROOT / "tools" / "preflight.sh")
    return subprocess.run(["/bin/sh", script], env=environment, capture_output=True, text=True, check=False)


def test_a_good_machine_gets_the_name_of_its_python(machine: Path) -> None:
    answer = preflight(machine)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "python3\n", "")


@pytest.mark.parametrize(
    ("java", "sentence"),
    [
        ("echo 'openjdk version \"11.0.2\" 2019-01-15' >&2", "Java 17 or newer is needed ('java' is 11.0.2)"),
        ("echo 'java version \"1.8.0_392\"' >&2", "Java 17 or newer is needed ('java' is 1.8.0_392)"),
        ("echo 'openjdk version \"25\" 2025-09-16' >&2", "Spark 4.0 does not run on Java 23 or newer"),
        ("echo 'Unable to locate a Java Runtime.' >&2; exit 1", "Java 17 or newer is needed and 'java' does not run"),
        (None, "Java 17 or newer is needed and 'java' does not run"),
    ],
)
def test_a_missing_or_unfit_java_gets_one_sentence(machine: Path, java: str | None, sentence: str) -> None:
    if java is None:
        (machine / "java").unlink()
    else:
        write_program(machine / "java", java)
    answer = preflight(machine)
    assert answer.returncode == 1
    assert sentence in answer.stderr
    assert len(answer.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("python", "found"), [("exit 1", "none"), ('[ "${2#*platform}" = "$2" ] && exit 1; echo 3.9.2', "3.9.2")]
)
def test_a_missing_or_old_python_gets_one_sentence(machine: Path, python: str, found: str) -> None:
    write_program(machine / "python3", python)
    answer = preflight(machine)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"backcast: Python 3.11 or newer is needed (found: {found})")
    assert len(answer.stderr.splitlines()) == 1
