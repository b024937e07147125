"""Code identity names everything that can change a result, and is the same everywhere else."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from backcast.model.manifest import CodeIdentity
from backcast.project.config import load_project
from backcast.project.identity import config_hash, git_state, installed_packages
from backcast.project.wiring import Wiring
from tests.unit.projects import GOOD, project, write

DAILY = """\
import importlib

import pipelines.sums
from .shared import tables

dynamic = importlib.import_module("pipelines.dynamic")


def daily(inputs, ctx):
    from pipelines.lazy import later
    return later()
"""
FILES = {
    "pipelines/sums.py": "from pipelines.deep.below import x\n",
    "pipelines/deep/below.py": "x = 1\n",
    "pipelines/shared/__init__.py": "",
    "pipelines/shared/tables.py": "",
    "pipelines/dynamic.py": "",
    "pipelines/lazy.py": "import pipelines.lazier\ndef later(): ...\n",
    "pipelines/lazier.py": "",
    "pipelines/unrelated.py": "",
    "seed.py": "raise SystemExit",
}


def identity(root: Path) -> CodeIdentity:
    return Wiring(load_project(root, environ={})).identity("daily")


def commit(root: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(root), *command], check=True, env={**environment, **names})
    answer = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def test_every_project_file_that_the_transform_can_load_counts_and_no_other(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    project(tmp_path, daily=DAILY)
    assert sorted(identity(tmp_path).files) == [
        "pipelines/daily.py",
        "pipelines/deep/below.py",
        "pipelines/dynamic.py",
        "pipelines/lazier.py",
        "pipelines/lazy.py",
        "pipelines/shared/__init__.py",
        "pipelines/shared/tables.py",
        "pipelines/sums.py",
    ]


def test_it_is_the_same_at_every_call_and_in_every_process(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    wiring = Wiring(project(tmp_path, daily=DAILY))
    first = wiring.identity("daily")
    wiring.transform("daily").body(None, None)  # type: ignore[arg-type]
    assert wiring.identity("daily") == first, "what was imported later counted from the start"
    code = (
        "import sys; from backcast.project.config import load_project; from backcast.project.wiring import Wiring;"
        "print(Wiring(load_project(sys.argv[1], environ={})).identity('daily').model_dump_json())"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, cwd="/")
    assert json.loads(answer.stdout) == first.as_json()


@pytest.mark.parametrize("file", ["pipelines/deep/below.py", "pipelines/lazier.py"])
def test_a_change_far_down_is_noticed_in_a_living_process(tmp_path: Path, file: str) -> None:
    write(tmp_path, FILES)
    wiring = Wiring(project(tmp_path, daily=DAILY))
    before = wiring.identity("daily")
    with (tmp_path / file).open("a") as opened:
        opened.write("# changed\n")
    after = wiring.identity("daily")
    assert {name for name in before.files if before.files[name] != after.files[name]} == {file}


def test_a_new_import_in_a_changed_file_joins_the_list(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    wiring = Wiring(project(tmp_path, daily=DAILY))
    assert "pipelines/unrelated.py" not in wiring.identity("daily").files
    write(tmp_path, {"pipelines/sums.py": "import pipelines.unrelated\n"})
    assert "pipelines/unrelated.py" in wiring.identity("daily").files


def test_packages_are_named_with_versions(tmp_path: Path) -> None:
    project(tmp_path)
    packages = identity(tmp_path).packages
    assert {"python", "pyspark", "pydantic", "backcast"} <= packages.keys()
    assert packages["pyspark"].startswith("4.0.")


def test_the_config_hash_follows_the_pipeline_and_its_datasets_only(tmp_path: Path) -> None:
    def hashed(old: str = "", new: str = "") -> str:
        return config_hash(project(tmp_path, GOOD.replace(old, new)), "daily")

    base = hashed()
    assert hashed("key: [day, shop]", "key: [shop, day]") != base
    assert hashed("window: all", "window: all}, more: {dataset: events") != base
    assert hashed("output: daily", "output: daily\n    publish: {undo_window: 8d}") != base
    assert hashed("output: daily", "output: daily\n    publish: {undo_window: 7d}") == base, (
        "a default that is spelled out"
    )
    assert hashed("type: jdbc,", "type: jdbc, jdbc.password: secret,") == base, "secrets are in no hash"
    assert hashed("datasets:", "datasets:\n  unused: {table: lake.shop.unused}") == base


def test_git_names_commit_and_dirty_files_of_the_project_only(tmp_path: Path) -> None:
    root = tmp_path / "sub dir"
    project(root)
    write(tmp_path, {"outside.txt": "1"})
    head = commit(tmp_path)
    assert (identity(root).git_commit, identity(root).git_dirty) == (head, ())
    write(tmp_path, {"outside.txt": "2"})
    write(root, {"pipelines/new.py": "", "ümlaut.py": "", ".backcast/store.db": "", ".lake/catalog.db": ""})
    (root / "backcast.yaml").write_text(GOOD + "\n# a comment\n")
    assert identity(root).git_dirty == ("backcast.yaml", "pipelines/new.py", "ümlaut.py")


def test_asking_git_does_not_write(tmp_path: Path) -> None:
    project(tmp_path)
    commit(tmp_path)
    file = tmp_path / "backcast.yaml"
    os.utime(file, (1, 1))
    before = (tmp_path / ".git/index").stat().st_mtime_ns
    assert git_state(tmp_path)[1] == ()
    assert (tmp_path / ".git/index").stat().st_mtime_ns == before


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project(tmp_path)
    assert git_state(tmp_path) == (None, ())
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_state(tmp_path) == (None, ())


def test_packages_are_those_that_the_interpreter_knows() -> None:
    """Names of folders say the same as the metadata in them."""
    named = {re.sub(r"[-_.]+", "-", name): version for name, version in installed_packages().items()}
    assert named.pop("python") == platform.python_version()
    known: dict[str, str] = {}
    for each in distributions():
        known.setdefault(re.sub(r"[-_.]+", "-", each.metadata["Name"].lower()), each.version)
    assert named == known
