"""How a command gets one verb done in its Spark child, with progress on the screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from backcast.cli.progress import ProgressView
from backcast.cli.screen import Screen
from backcast.cli.spark_child import SparkChild

if TYPE_CHECKING:
    from backcast.cli.options import Common
    from backcast.cli.protocol import Verb

__all__ = ["SparkChild", "Working", "screen_of", "working"]


class Working:
    """A child and a screen together: each `call` shows its progress and gives the answer."""

    def __init__(self, screen: Screen, child: SparkChild) -> None:
        self.screen = screen
        self._child = child
        self._started = False

    def call(self, verb: Verb, waiting: str, **arguments: Any) -> Any:
        """`waiting` is shown until the child has something better to say."""
        text = waiting if self._started else f"starting Spark, then {waiting}"
        self._started = True
        with ProgressView(self.screen, text) as view:
            self._child.on_stopping = view.stopping
            return self._child.call(verb, arguments, view)


@contextmanager
def working(common: Common, verb: Verb, *, dry: bool = False) -> Iterator[Working]:
    """Leaving ends the child, whatever happened. A dry one leaves nothing in the project."""
    with SparkChild(common, verb, dry=dry) as child:
        yield Working(screen_of(common), child)


def screen_of(common: Common) -> Screen:
    return Screen(json=common.json, no_color=common.no_color, verbose=common.verbose)
