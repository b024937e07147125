"""Problems in a project's declarations: each names its place, its key and what was expected; all are told at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn

from backcast.errors import ConfigError

if TYPE_CHECKING:
    from pydantic import ValidationError

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, or something else that has no lines, such as an environment variable."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to correct. `text` must not hold a secret."""

    place: Place
    path: KeyPath
    text: str

    def __str__(self) -> str:
        key = dotted(self.path)
        return f"{self.place}: {key}: {self.text}" if key else f"{self.place}: {self.text}"


def dotted(path: KeyPath) -> str:
    """`datasets.daily.key[0]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def raise_problems(problems: Sequence[Problem]) -> None:
    """Raise one ConfigError with a line per problem, in the order of the file; nothing when there is none."""
    if problems:
        _raise(sorted(problems, key=lambda each: (each.place.line is None, each.place.line or 0)))


def _raise(problems: list[Problem]) -> NoReturn:
    first = problems[0]
    lines = list(dict.fromkeys(map(str, problems)))
    message = lines[0] if len(lines) == 1 else f"{len(lines)} problems\n" + "\n".join(f"  {line}" for line in lines)
    raise ConfigError(
        message,
        hint="correct it and repeat the command",
        file=first.place.source,
        line=first.place.line,
        key=dotted(first.path),
        problems="\n".join(lines),
    ) from None


def suggestion(name: str, known: Iterable[str]) -> str:
    """`; did you mean daily?`, or the names there are, or nothing when there are none."""
    names = sorted(known)
    close = get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    close = close or [each for each in names if len(name) > 2 and each.lower().startswith(name.lower())]
    if close:
        return f"; did you mean {close[0]}?"
    return f"; expected one of {', '.join(names)}" if names else ""


def from_validation(
    error: ValidationError,
    place: Callable[[KeyPath], Place],
    keys_at: Callable[[KeyPath], Iterable[str]],
    is_secret: Callable[[KeyPath], bool],
) -> list[Problem]:
    """Pydantic's errors in the product's words."""
    problems = []
    for each in error.errors(include_url=False):
        path: KeyPath = tuple(each["loc"])
        if each["type"] == "extra_forbidden":
            text = f"unknown key{suggestion(str(path[-1]), keys_at(path[:-1]))}"
        else:
            text = _text(each["type"], each["msg"], each.get("ctx", {}), "" if is_secret(path) else _got(each["input"]))
        where = path[:-1] if each["type"] == "missing" else path
        problems.append(Problem(place(where), path, text))
    return problems


_EXPECTED = {
    "string_type": "text",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "tuple_type": "a list such as [a, b]",
    "list_type": "a list such as [a, b]",
    "dict_type": "keys with values",
    "model_type": "keys with values",
    "too_short": "at least one entry",
}


def _text(kind: str, message: str, context: dict[str, Any], got: str) -> str:
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}{got}"
    match kind:
        case "missing":
            return "required, and missing"
        case "enum" | "literal_error":
            names = re.findall(r"'([^']*)'", str(context.get("expected", "")))
            return f"expected {'one of ' if len(names) > 1 else ''}{', '.join(names)}{got}"
        case "greater_than_equal" | "less_than_equal":
            bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
            return f"expected {bound}{got}"
        case "value_error":
            return str(context.get("error", message))
        case _:
            return message


def _got(value: Any) -> str:
    match value:
        case None:
            return ", got nothing"
        case str():
            return f", got {value!r}" if len(value) <= 60 else f", got {value[:60]!r}..."
        case dict():
            return ", got keys with values"
        case list() | tuple():
            return ", got a list"
        case _:
            return ""
