"""SQL transforms: one query over the pipeline's inputs, which it names like tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.project.transform import Context, Inputs
from backcast.spark.views import as_views

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PIECE = re.compile(
    r"""--[^\n]* | /\*.*?\*/ | (?<!\w)[rR](?:'[^']*'|"[^"]*") | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | `[^`]*` | ;""",
    re.DOTALL | re.VERBOSE,
)
"""Comments, texts and quoted names, in which a `;` ends nothing; and the `;` that does."""


class SqlBody:
    """A query, called like a Python transform. It can only read: in brackets Spark takes nothing but a query.

    Besides its inputs it knows `:run_id`, `:execution`, `:window_start`, `:window_end` and `:clock`.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = one_query(name, text)

    def __call__(self, inputs: Inputs, ctx: Context) -> DataFrame:
        arguments = {
            "run_id": ctx.run_id,
            "execution": str(ctx.execution),
            "window_start": ctx.window.start,
            "window_end": ctx.window.end,
            "clock": ctx.clock(),
        }
        with as_views(ctx.spark, inputs):
            # The first line stays the first, so that Spark's error positions are those of the file.
            query = f"SELECT * FROM ({self.text}\n)"  # noqa: S608 - the user's own query is the point
            return ctx.spark.sql(query, args=arguments)


def one_query(name: str, text: str) -> str:
    """The file's query, without the `;` at its end and comments after it. Raises InvalidRequest for more, or none."""
    ends = [match.start() for match in _PIECE.finditer(text) if match.group() == ";"]
    query = (text[: ends[0]] if ends else text).rstrip()
    if not _code(query):
        got = "comments alone" if query else "an empty file"
        raise InvalidRequest(f"{name}: expected a query, got {got}", hint="write a SELECT into it")
    if ends and _code(text[ends[0] :]).strip("; \t\r\n"):
        line = text.count("\n", 0, ends[0]) + 1
        hint = "a file holds one query: remove what follows its `;`, or make a pipeline of its own of it"
        raise InvalidRequest(f"{name}:{line}: there is more after the `;` that ends the query", hint=hint)
    return query


def _code(text: str) -> str:
    """The text without comments."""
    return _PIECE.sub(lambda match: " " if match.group().startswith(("--", "/*")) else match.group(), text).strip()
