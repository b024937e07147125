"""The verdict of a run: what failed first, with rows that show why, then every layer check by check."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from backcast.cli.render.layout import (
    BAD,
    CAREFUL,
    GOOD,
    QUIET,
    STRONG,
    command,
    flexible,
    indented,
    page,
    section,
    text,
    tick,
)
from backcast.cli.render.words import count, moment
from backcast.model.rule import Number, PartResult, RuleResult
from backcast.model.verdict import Check, Consequence, Layer, Outcome, Review, Verdict

_STYLES = {Outcome.ACCEPTED: GOOD, Outcome.REVIEW: CAREFUL, Outcome.REJECTED: BAD}
_MARKS = {Consequence.BLOCK: ("✗", BAD), Consequence.REVIEW: ("?", CAREFUL), Consequence.WARN: ("!", CAREFUL)}
_SAMPLES, _PARTITIONS = 3, 5


def render_verdict(verdict: Verdict) -> RenderableType:
    outcome = verdict.outcome
    numbers = f"{count(verdict.rows, 'row')} in {count(len(verdict.partitions), 'chunk')}, {moment(verdict.at)}"
    if not verdict.partitions:
        numbers = f"{count(verdict.rows, 'row')}, {moment(verdict.at)}"
    return page(
        text((verdict.run_id, STRONG), "  ", (str(outcome), _STYLES[outcome])),
        indented(text((numbers, QUIET))),
        failures(verdict.checks, verdict.results, verdict.review),
        *_layers(verdict.checks),
        command(*_following(verdict)),
    )


def failures(
    checks: tuple[Check, ...], results: tuple[RuleResult, ...] = (), review: Review | None = None
) -> RenderableType | None:
    """What did not pass, with rows that show why; None when everything did."""
    failed = tuple(each for each in checks if not each.passed)
    if not failed:
        return None
    known = {each.name: each for each in results}
    if review is None:
        return section(_heading(failed), _failures(failed, known))
    who = f"{review.by} as {review.role}" if review.role else review.by
    return section(f"Looked at and accepted by {who}: {review.comment}", _failures(failed, known))


def checks_table(checks: tuple[Check, ...]) -> RenderableType:
    """Failed checks first, the gravest ahead, otherwise in the order in which they were made."""
    grid = _grid()
    for each in sorted(checks, key=lambda check: (check.passed, list(Consequence).index(check.consequence))):
        _add(grid, each)
    return grid


def _grid() -> Table:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(max_width=32, overflow="fold")
    grid.add_column(overflow="fold")
    return grid


def _add(grid: Table, check: Check) -> None:
    mark = tick(check.passed) if check.passed else Text(*_MARKS[check.consequence])
    grid.add_row(mark, text((check.name, "" if check.passed else STRONG)), text(check.detail))


def _heading(failed: tuple[Check, ...]) -> str:
    """`2 checks failed, 1 needs a look, 1 warning`."""
    numbers = {kind: sum(1 for each in failed if each.consequence is kind) for kind in Consequence}
    looks = numbers[Consequence.REVIEW]
    said = [
        (numbers[Consequence.BLOCK], f"{count(numbers[Consequence.BLOCK], 'check')} failed"),
        (looks, f"{looks} {'needs' if looks == 1 else 'need'} a look"),
        (numbers[Consequence.WARN], count(numbers[Consequence.WARN], "warning")),
    ]
    return ", ".join(words for number, words in said if number)


def _failures(failed: tuple[Check, ...], results: dict[str, RuleResult]) -> RenderableType:
    parts: list[RenderableType] = []
    for each in sorted(failed, key=lambda check: list(Consequence).index(check.consequence)):
        grid = _grid()
        _add(grid, each)
        parts.append(grid)
        result = results.get(each.name)
        if result is not None:
            parts += _evidence(result)
    return Group(*parts)


def _evidence(result: RuleResult) -> Iterable[RenderableType]:
    """The numbers of partitions that fail, and rows that break the rule; each on one line."""
    lines = [f"{_place(each)}: {_numbers(each)}" for each in result.partitions[:_PARTITIONS]]
    if result.failing_partitions > len(lines) > 0:
        noun = "more group" if result.partitions[0].group else "more partition"
        lines.append(f"and {count(result.failing_partitions - len(lines), noun)}")
    lines += [f"row  {_cells(sample)}" for sample in result.samples[:_SAMPLES]]
    more = (result.failing_rows or 0) - len(result.samples[:_SAMPLES])
    if result.samples and more > 0:
        lines.append(f"and {count(more, 'more row')}")
    for line in lines:
        yield Padding(flexible(text((line, QUIET))), (0, 0, 0, 3), expand=False)


def _place(part: PartResult) -> str:
    return ", ".join(each for each in (part.chunk, part.group) if each)


def _numbers(part: PartResult) -> str:
    return ", ".join(f"{name} {_number(value)}" for name, value in part.numbers.items())


def _cells(sample: dict[str, str | None]) -> str:
    return "  ".join(f"{name}={'null' if value is None else value}" for name, value in sample.items())


def _number(value: Number) -> str:
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def _layers(checks: tuple[Check, ...]) -> Iterable[RenderableType]:
    """What passed, by what it is about."""
    for layer in Layer:
        passed = tuple(each for each in checks if each.passed and each.layer is layer)
        if passed:
            yield section(layer.capitalize(), checks_table(passed))


def _following(verdict: Verdict) -> list[str]:
    match verdict.outcome:
        case Outcome.ACCEPTED:
            return [f"backcast diff {verdict.run_id}", f"backcast publish {verdict.run_id}"]
        case Outcome.REVIEW:
            return [f"backcast diff {verdict.run_id}", f'backcast approve {verdict.run_id} --comment "..."']
        case Outcome.REJECTED:
            return [f"backcast diff {verdict.run_id}"]
