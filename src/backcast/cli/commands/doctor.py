from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backcast.cli.locate import find_project, short_path
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of, working
from backcast.errors import BackcastError, Failed

if TYPE_CHECKING:
    from backcast.model.report import Probe


def doctor(*, common: Common = DEFAULTS) -> int:
    """Check Java, packages, project, store, Spark and catalogs."""
    from backcast.cli import machine
    from backcast.cli.render.doctor import render_probes

    probes = machine.probes()
    project = _project(common)
    probes.append(project)
    if all(each.ok for each in probes if each.name in ("java", "pyspark", "project")):
        probes += _in_child(common)
    screen_of(common).show(probes, render_probes(probes))
    return 0 if all(each.ok for each in probes) else Failed.exit_code


def _project(common: Common) -> Probe:
    from backcast.model.report import Probe

    try:
        folder: Path = find_project(common.project)
        from backcast.project.config import load_project

        project = load_project(folder, common.profile)
    except BackcastError as error:
        return Probe(name="project", ok=False, detail=error.message, remedy=error.hint)
    profile = f", profile {project.profile}" if project.profile else ""
    declared = f"{len(project.config.datasets)} datasets, {len(project.config.pipelines)} pipelines"
    return Probe(name="project", ok=True, detail=f"{short_path(project.file)}{profile}: {declared}")


def _in_child(common: Common) -> list[Probe]:
    from backcast.model.report import Probe

    try:
        with working(common, "doctor") as work:
            return [Probe.model_validate(each) for each in work.call("doctor", "looking at the tables")]
    except BackcastError as error:
        log = error.attributes.get("log")
        remedy = " ".join(filter(None, (error.hint, f"(log: {log})" if log else "")))
        return [Probe(name="spark", ok=False, detail=error.message, remedy=remedy)]
