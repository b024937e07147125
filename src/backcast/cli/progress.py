"""Progress of a run on stderr: a bar on a terminal, a line now and then elsewhere, nothing under `--json`."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from backcast.cli.render.pace import counted, pace, plain_line

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from backcast.cli.screen import Screen

_PLAIN_SECONDS = 10.0
_WORDS = {"stage": "staging", "validate": "validating", "publish": "publishing", "undo": "undoing"}


class ProgressView:
    """Feed it the child's progress documents. Must be left before anything else is printed on the terminal."""

    def __init__(self, screen: Screen, waiting: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._waiting = waiting
        self._clock = clock
        self._step = ""
        self._printed_at = float("-inf")
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if self._screen.err.is_terminal and not self._screen.json:
            self._bar = _bar(self._screen)
            self._task = self._bar.add_task(self._waiting, total=None, count="", pace="")
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
        if self._bar is not None and self._task is not None:
            done, total = document["done"], document["total"] or None
            if total is None:
                self._bar.reset(self._task, total=None)
            step = document["step"]
            label = document["message"] if _tells(document) else _WORDS.get(step, step)
            self._bar.update(self._task, description=label, completed=done, total=total)
            self._bar.update(self._task, count=counted(document), pace=pace(document))
        elif self._is_due(document):
            self._screen.note(plain_line(document))

    def stopping(self) -> None:
        """Say that a signal was heard and what a second one does."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description="stopping; Ctrl-C again ends it by force")
        else:
            self._screen.note("stopping")

    def _is_due(self, document: dict[str, Any]) -> bool:
        """The first and the last of a step, and one every few seconds between."""
        now = self._clock()
        # The waits of a replay have nothing to count, and come every second.
        is_end = document["done"] == document["total"] and document["step"] != "replay"
        ends = is_end or document["step"] != self._step
        if not ends and now - self._printed_at < _PLAIN_SECONDS:
            return False
        self._step, self._printed_at = document["step"], now
        return True


def _tells(document: dict[str, Any]) -> bool:
    """Whether its words say more than its numbers: where a stream stands, which has no chunks to count; and why nothing
    goes on.
    """
    return document["step"] in ("stream", "replay") or document["message"].startswith(("waits", "rests"))


def _bar(screen: Screen) -> Progress:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=None, table_column=Column(ratio=1, min_width=8)),
        TextColumn("{task.fields[count]}", markup=False, table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[pace]}", markup=False, table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        console=screen.err,
        transient=True,
        expand=True,
    )
