"""Projects on disk for tests of everything that reads one."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from backcast.project.config import Project, load_project

GOOD = """\
name: shop
catalogs:
  lake: {type: jdbc, uri: "jdbc:sqlite:.lake/catalog.db", warehouse: .lake/warehouse}
datasets:
  events: {table: lake.shop.events, time: {column: event_time}}
  shops: {table: lake.shop.shops}
  daily:
    table: lake.shop.daily
    time: {column: day, kind: date, zone: Europe/Berlin}
    key: [day, shop]
pipelines:
  daily:
    transform: pipelines.daily:daily
    version: 1.0.0
    inputs: {events: events, shops: {dataset: shops, window: all}}
    output: daily
"""

TRANSFORM = """\
import backcast


@backcast.transform(name="daily", version="1.0.0")
def daily(inputs, ctx):
    return inputs["events"]
"""


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
    return root


def project(root: Path, yaml: str = GOOD, *, environ: Mapping[str, str] | None = None, **files: str) -> Project:
    """The project with this yaml and these modules of `pipelines/`."""
    modules = {"daily": TRANSFORM, **files}
    write(root, {"backcast.yaml": yaml, **{f"pipelines/{name}.py": text for name, text in modules.items()}})
    return load_project(root, environ=environ or {})
