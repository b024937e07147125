"""What retention took before a stream could read it, as windows that are to be restated."""

from __future__ import annotations

from backcast.model.document import Document
from backcast.model.log import Ranges
from backcast.model.request import Request

RESTORED = "recover.restored"
"""The step behind which no window lacks what the recovery before it went past."""


class LostWindows(Document):
    """Of the table of a stream whose pipeline replaces windows."""

    requests: tuple[Request, ...]
    """Together they ask for exactly those that are still to be restated."""
    unread: Ranges = ()
    """Lost offsets that a run which restated their window has not read: it goes by the time that records carry."""
