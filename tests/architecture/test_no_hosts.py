"""Files work on any machine: none names a package registry or a path of the machine that it was written on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (".ci", "bench", "docs", "examples", "src", "tests", "tools")
# Spelled in pieces, so that this file does not contain what it looks for.
REGISTRIES = [
    "py" + r"pi\.org",
    "python" + "hosted",
    "repo1" + r"\.maven",
    "repo" + r"\.maven",
    "artifact" + "ory",
    "jf" + "rog",
]
PATHS = [r"(?<![\w.~}])/" + folder + "/" for folder in ("wo" + "rk", "ro" + "ot", "ho" + "me", "Us" + "ers")]
INDEX = r"https?://[^\s\"']*/simp" + r"le\b"
FORBIDDEN = re.compile("|".join([*REGISTRIES, *PATHS, INDEX]), re.IGNORECASE)


def project_files() -> list[Path]:
    """Everything that is kept in git, found without git: a machine needs only Python, Java and make."""
    top = [path for path in ROOT.iterdir() if path.is_file() and path.name not in (".git", "uv.lock")]
    below = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path for path in top + below if "__pycache__" not in path.parts]


def test_no_file_names_a_registry_or_a_path_of_this_machine() -> None:
    files = project_files()
    assert ROOT / "requirements.lock" in files
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text(errors="ignore").splitlines(), start=1)
        if FORBIDDEN.search(line)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line", ["https://py" + "pi.org/simple", "url = 'https://mirror.example/simp" + "le/'", "open('/ro" + "ot/.cache')"]
)
def test_a_registry_or_a_path_would_be_found(line: str) -> None:
    assert FORBIDDEN.search(line)
