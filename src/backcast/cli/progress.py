"""Progress of a run on stderr: a bar on a terminal, a line now and then elsewhere, nothing under `--json`."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from backcast.cli.render.pace import Pace, pace_text, plain_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from backcast.cli.screen import Screen

_PLAIN_SECONDS = 10.0
_WORDS = {
    "plan": "planning",
    "run": "starting",
    "stage": "staging",
    "validate": "validating",
    "publish": "publishing",
    "undo": "undoing",
    "start": "starting Spark",
}


class ProgressView:
    """Feed it the child's progress documents. Must be left before anything else is printed on the terminal."""

    def __init__(
        self, screen: Screen, message: str = "starting Spark", clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen = screen
        self._clock = clock
        self._pace = Pace()
        self._step = ""
        self._printed_at = float("-inf")
        self._message = message
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._screen.json:
            return self
        if self._screen.err.is_terminal:
            self._bar = _bar(self._screen)
            self._task = self._bar.add_task(self._message, total=None, pace="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, document: dict[str, Any]) -> None:
        if self._screen.json:
            return
        now = self._clock()
        step, done, total = document["step"], document["done"], document["total"]
        changed = step != self._step
        if changed:
            self._step, self._pace = step, Pace()
        self._pace.feed(done, document["rows"], now)
        left = self._pace.seconds_left(total)
        if self._bar is not None and self._task is not None:
            text = pace_text(self._pace.rows_per_second, left) if total else ""
            label = _WORDS.get(step, step) if total else document["message"] or _WORDS.get(step, step)
            self._bar.update(self._task, description=label, completed=done, total=total or None, pace=text)
        elif changed or done == total or now - self._printed_at >= _PLAIN_SECONDS:
            self._printed_at = now
            self._screen.note(plain_line(document, self._pace.rows_per_second, left))

    def stopping(self) -> None:
        """Say that a signal was heard and what a second one does."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description="stopping; Ctrl-C again ends it by force")
        else:
            self._screen.note("stopping")


def _bar(screen: Screen) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=2, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=None, table_column=Column(ratio=2)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[pace]}", markup=False, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(),
        console=screen.err,
        transient=True,
        expand=True,
    )
