from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backcast.cli.locate import find_project, short_path
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of, working
from backcast.errors import BackcastError, Failed

if TYPE_CHECKING:
    from backcast.model.report import Probe
    from backcast.project.config import Project
    from backcast.spark.versions import Package


def doctor(*, common: Common = DEFAULTS) -> int:
    """Check Java, packages, project, store, Spark and catalogs."""
    from backcast.cli import machine
    from backcast.cli.render.doctor import render_probes

    project, packages = _project(common)
    probes = [*machine.probes(packages), project]
    if all(each.ok for each in probes if each.name in ("java", "pyspark", "project")):
        probes += _in_child(common)
    screen_of(common).show(probes, render_probes(probes))
    return 0 if all(each.ok for each in probes) else Failed.exit_code


def _project(common: Common) -> tuple[Probe, tuple[Package, ...] | None]:
    """Whether the project can be read, and the connectors that it needs, if that can be told."""
    from backcast.model.report import Probe
    from backcast.model.words import many

    try:
        folder: Path = find_project(common.project)
        from backcast.project.config import load_project

        project = load_project(folder, common.profile)
    except BackcastError as error:
        return Probe(name="project", ok=False, detail=error.message, remedy=error.hint), None
    profile = f", profile {project.profile}" if project.profile else ""
    config = project.config
    numbers = {"source": len(config.sources), "dataset": len(config.datasets), "pipeline": len(config.pipelines)}
    declared = ", ".join(many(number, name) for name, number in numbers.items() if number or name != "source")
    return Probe(name="project", ok=True, detail=f"{short_path(project.file)}{profile}: {declared}"), _packages(project)


def _packages(project: Project) -> tuple[Package, ...] | None:
    from backcast.project.session import session_settings

    try:
        return session_settings(project).packages
    except BackcastError:
        # A variable is not set; the probe of the settings says which.
        return None


def _in_child(common: Common) -> list[Probe]:
    from backcast.model.report import Probe

    try:
        with working(common, "doctor") as work:
            return [Probe.model_validate(each) for each in work.call("doctor", "looking at the tables")]
    except BackcastError as error:
        log = error.attributes.get("log")
        remedy = " ".join(filter(None, (error.hint, f"(log: {log})" if log else "")))
        return [Probe(name="spark", ok=False, detail=error.message, remedy=remedy)]
