"""`backcast init`: a small project that works, with a bug in its data to fix."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from backcast.errors import InvalidRequest, Unavailable
from backcast.model.pipeline import TableFormat

_SUFFIX = ".tmpl"
_NAME = "__NAME__"


@dataclass(frozen=True, slots=True)
class Initialised:
    """What `init_project` did, as paths relative to the folder."""

    root: Path
    written: tuple[str, ...]
    kept: tuple[str, ...]
    """Files that were there already and were left as they are."""


def init_project(folder: str | Path = ".", *, table_format: TableFormat = TableFormat.ICEBERG) -> Initialised:
    """Write the sample project into the folder, which is made if need be. Never changes a file that is there.

    Raises InvalidRequest when the folder already holds a project, Unavailable when it cannot be written.
    """
    root = Path(folder).expanduser().resolve()
    if (root / "backcast.yaml").exists():
        raise InvalidRequest(
            f"{root} already holds a backcast.yaml", hint="run `backcast init DIR` with another folder"
        )
    name = project_name(root)
    written, kept = [], []
    try:
        for path, text in template_files(table_format):
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with target.open("x", encoding="utf-8") as file:
                    file.write(text.replace(_NAME, name))
                written.append(path)
            except FileExistsError:
                kept.append(path)
    except OSError as error:
        raise Unavailable(
            f"{root} cannot be written: {error.strerror}", hint="name a folder that you may write"
        ) from error
    return Initialised(root, tuple(written), tuple(kept))


def project_name(root: Path) -> str:
    """The folder's name as far as a project may be called that."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", root.name).strip("-_")[:63]
    return plain if plain[:1].isalpha() else "shop"


def template_files(table_format: TableFormat = TableFormat.ICEBERG) -> Iterator[tuple[str, str]]:
    """Path and text of every file of the sample, in order. What tells of tables is another one for each format."""
    own = dict(_walk(files("backcast.project") / "template_delta", "")) if table_format is TableFormat.DELTA else {}
    for path, text in _walk(files("backcast.project") / "template", ""):
        yield path, own.get(path, text)


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for each in sorted(folder.iterdir(), key=lambda item: item.name):
        name = each.name.removesuffix(_SUFFIX).replace("dot-", ".")
        if each.is_dir():
            yield from _walk(each, f"{prefix}{name}/")
        elif each.name.endswith(_SUFFIX):
            yield f"{prefix}{name}", each.read_text(encoding="utf-8")
