"""What a run would read, write, take and cost."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.layout import QUIET, STRONG, blocks, page, section, text
from backcast.cli.render.plan import approval_lines, change_lines, cost_text, findings_grid
from backcast.cli.render.words import about, count, number, size
from backcast.model.manifest import Estimate
from backcast.model.report import Plan

_ABOUT = ("budget.", "capacity.")


def render_estimate(plan: Plan) -> RenderableType:
    manifest = plan.manifest
    estimate = manifest.estimate
    told = tuple(each for each in plan.findings if each.code.startswith(_ABOUT))
    return page(
        text(("Estimate of ", STRONG), (manifest.pipeline, STRONG), ("  nothing recorded", QUIET)),
        blocks(
            [
                ("change", change_lines(manifest)),
                ("reads", [f"{count(estimate.input_rows, 'row')}, {size(estimate.input_bytes)}"]),
                ("writes", [_rows(estimate)]),
                ("takes", _time(estimate)),
                ("costs", _cost(estimate)),
                ("approval", approval_lines(manifest)),
            ]
        ),
        section("Findings", findings_grid(told)) if told else None,
    )


def _rows(estimate: Estimate) -> str:
    amount = "" if estimate.output_bytes is None else f", {size(estimate.output_bytes)}"
    if estimate.rows_low is None or estimate.rows_high is None or estimate.rows_low == estimate.rows_high:
        return f"about {count(estimate.output_rows, 'row')}{amount}"
    band = f"{number(estimate.rows_low)} to {number(estimate.rows_high)}"
    return f"about {number(estimate.output_rows)} rows ({band}){amount}"


def _time(estimate: Estimate) -> list[RenderableType]:
    lines: list[RenderableType] = [
        text((about(estimate.seconds_low, estimate.seconds_high), STRONG), (f"  {estimate.basis}", QUIET))
    ]
    return [*lines, text((estimate.band, QUIET))] if estimate.band else lines


def _cost(estimate: Estimate) -> list[RenderableType]:
    cost = cost_text(estimate)
    return [text((cost, STRONG))] if cost else [text(("unknown: the project has no policy with prices", QUIET))]
