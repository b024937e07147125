"""What was seen in the table after a publish."""

from __future__ import annotations

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, command, indented, page, section, text
from backcast.cli.render.verdict import checks_table
from backcast.cli.render.words import count, moment
from backcast.model.watch import Look, Watch


def render_watch(watch: Watch) -> RenderableType:
    seen = watch.newest
    if seen is None:
        return text((watch.run_id, STRONG), ("  nobody has looked yet", QUIET))
    wrong = sum(1 for each in seen.checks if not each.passed)
    return page(
        text((watch.run_id, STRONG), "  ", _word(seen)),
        indented(text((watched(watch), QUIET))),
        section(f"{count(wrong, 'check')} failed" if wrong else "Checks", checks_table(seen.checks)),
        command(f"backcast undo {watch.run_id}", label="To take it back") if watch.failed else None,
    )


def watched(watch: Watch) -> str:
    """How often, and until when."""
    seen = watch.newest
    if seen is None:
        return f"until {moment(watch.until)}, nobody has looked yet" if watch.until else ""
    until = f", until {moment(watch.until)}" if watch.until else ""
    return f"{count(watch.looks, 'look')}{until}; the last {moment(seen.at)} at version {seen.version}"


def _word(seen: Look) -> tuple[str, str]:
    if not seen.passed:
        return ("FAILED", BAD)
    return ("AS IT SHOULD BE", GOOD) if all(each.passed for each in seen.checks) else ("WITH WARNINGS", CAREFUL)
