"""Which code computes a result: project files, installed packages, declarations, and where git stands."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from backcast.model.document import canonical, sha256
from backcast.model.manifest import CodeIdentity
from backcast.project.archives import archived_source

if TYPE_CHECKING:
    from backcast.project.config import Project
    from backcast.project.loading import LoadedTransform

_GIT_SECONDS = 30
_INFO = re.compile(r"(?P<name>[^-]+)-(?P<version>[^-]+)(-py[\d.]+)?\.(dist|egg)-info")


def code_identity(
    project: Project, transform: LoadedTransform, rule_files: Mapping[str, str] = MappingProxyType({})
) -> CodeIdentity:
    """The same in every process and at every call as long as nothing that it names changes. Never holds a secret."""
    commit, dirty = git_state(project.root, own_folders(project))
    return CodeIdentity(
        transform=transform.reference,
        version=transform.version,
        files={**rule_files, **transform.files},
        packages=installed_packages(),
        config=config_hash(project, transform.pipeline),
        git_commit=commit,
        git_dirty=dirty,
    )


def config_hash(project: Project, pipeline: str) -> str:
    """SHA-256 of the resolved pipeline and of the datasets it reads and writes.

    Catalogs and Spark's address are not in it: a manifest records the tables' own identity and the settings that change
    results elsewhere.
    """
    archived = archived_source(project, pipeline)
    if archived is not None:
        return sha256(canonical({"archive": {"topic": archived.topic, "isolation": archived.isolation}}))
    config = project.pipeline_config(pipeline)
    names = {config.output, *(each.dataset for each in config.inputs.values())}
    sources = project.config.sources
    document: dict[str, Any] = {
        "pipeline": {"name": pipeline, **config.as_json()},
        "datasets": {
            name: _without(project.config.datasets[name].as_json(), _LOOKED_FOR)
            for name in sorted(names - sources.keys())
        },
    }
    if read := sorted(names & sources.keys()):
        # Where brokers and archives are, and who we are to them, changes no result.
        document["sources"] = {name: _without(sources[name].as_json(), _PLACES) for name in read}
    return sha256(canonical(document))


_PLACES = ("servers", "security", "options", "archive")
_LOOKED_FOR = ("calendar", "closed", "position")
"""By which gaps are found; no run goes by it."""


def _without(declared: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in declared.items() if key not in keys}


def installed_packages() -> dict[str, str]:
    """Every distribution in the folders that this interpreter imports from, and the interpreter itself.

    Going by the names of their folders, which hold name and version: to open their metadata takes forty times longer.
    """
    found = {"python": platform.python_version()}
    for folder in map(Path, sys.path):
        for named in filter(None, (_INFO.fullmatch(each.name) for each in sorted(folder.glob("*-info")))):
            # The first on the path is the one that is imported.
            found.setdefault(named["name"].lower().replace("_", "-"), named["version"])
    return dict(sorted(found.items()))


def own_folders(project: Project) -> tuple[str, ...]:
    """What Backcast and the embedded catalogs write into the project: never code, so never dirty."""
    names = {".backcast"}
    store = project.store_path
    if store is not None and store.is_relative_to(project.root):
        names.add(store.relative_to(project.root).parts[0])
    for catalog in project.config.catalogs.values():
        for text in (catalog.warehouse, (catalog.uri or "").removeprefix("jdbc:sqlite:")):
            if text and ":" not in text and not text.startswith("/"):
                names.add(Path(text).parts[0])
    return tuple(sorted(names - {"."}))


def git_state(root: Path, ignore: tuple[str, ...] = ()) -> tuple[str | None, tuple[str, ...]]:
    """The commit, and the project's files that differ from it. None and nothing without git or outside a repository.

    Where git cannot say what differs, the commit does not count: the code may be any other.
    """
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    listing = _git(root, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", ".")
    if commit is None or listing is None:
        return None, ()
    prefix = (_git(root, "rev-parse", "--show-prefix") or "").strip()
    files = (entry[3:].removeprefix(prefix) for entry in listing.split("\0") if len(entry) > 3)
    dirty = sorted(file for file in files if file.split("/")[0] not in ignore and "__pycache__" not in file)
    return commit.strip(), tuple(dirty)


def _git(root: Path, *arguments: str) -> str | None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    # Asking must not write: without this, `status` refreshes the index.
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    command = ["git", "-C", str(root), *arguments]
    try:
        answer = subprocess.run(
            command, capture_output=True, check=False, timeout=_GIT_SECONDS, env=environment, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Names are for people and for canonical JSON, which has no place for bytes that are no text.
    return answer.stdout.decode(errors="replace") if answer.returncode == 0 else None
