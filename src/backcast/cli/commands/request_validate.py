from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.locate import find_project
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of, working
from backcast.errors import InvalidRequest, PlanRefused

if TYPE_CHECKING:
    from backcast.model.report import RequestCheck


def request_validate(
    *files: Annotated[Path, Parameter(metavar="FILE", help="Request files, such as requests/2025-april.yaml.")],
    deep: Annotated[bool, Parameter(help="Also plan each, recording nothing: takes Spark, asks inputs and tables.")] = (
        False
    ),
    common: Common = DEFAULTS,
) -> int:
    """Check request files: dates, duplicates, overlaps, reasons."""
    if not files:
        raise InvalidRequest("which files?", hint="backcast request validate requests/*.yaml")
    found = _looked_at(files, common)
    if deep:
        found = _planned(found, common)
    from backcast.cli.render.request import render_checks

    screen_of(common).show(found, render_checks(found))
    return PlanRefused.exit_code if any(each.refused for each in found) else 0


def _looked_at(files: tuple[Path, ...], common: Common) -> list[RequestCheck]:
    from backcast.project.request_check import Checking, check_requests
    from backcast.project.wiring import open_world

    world = open_world(find_project(common.project), common.profile)
    try:
        checking = Checking(world.project, world.reader(), world.policy(), datetime.now(UTC), world.kafka_offsets)
        return check_requests(files, checking)
    finally:
        world.close()


def _planned(found: list[RequestCheck], common: Common) -> list[RequestCheck]:
    """What a plan says, in place of what could not be known without one."""
    from backcast.model.report import Plan

    answers = []
    with working(common, "plan", dry=True) as work:
        for each in found:
            request = each.request.as_json()
            planned = Plan.model_validate(work.call("plan", f"planning {each.file}", request=request, record=False))
            known = {finding.code for finding in planned.findings} | {"request.retention"}
            kept = [finding for finding in each.findings if finding.code not in known]
            answers.append(each.model_copy(update={"findings": (*kept, *planned.findings)}))
    return answers
