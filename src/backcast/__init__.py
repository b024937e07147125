"""Backcast rewrites history in Spark tables: planned, staged, validated, published in one commit, reversible.

The public names load on first use, so that `import backcast` stays free of Spark, pydantic and SQLAlchemy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from backcast.model.request import Request
    from backcast.model.states import Execution
    from backcast.project.api import open_project as open
    from backcast.project.transform import Context, Inputs, transform

__version__ = "0.1.0"
__all__ = ["Context", "Execution", "Inputs", "Request", "__version__", "open", "transform"]

_HOMES = {
    "Context": ("backcast.project.transform", "Context"),
    "Execution": ("backcast.model.states", "Execution"),
    "Inputs": ("backcast.project.transform", "Inputs"),
    "Request": ("backcast.model.request", "Request"),
    "open": ("backcast.project.api", "open_project"),
    "transform": ("backcast.project.transform", "transform"),
}


def __getattr__(name: str) -> Any:
    """Load a public name from its home; anything else is an AttributeError, as usual."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _HOMES[name]
    value = getattr(import_module(module), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
