"""Where a project keeps its store: in a SQLite file of its own, or in a PostgreSQL database."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from backcast.project.problems import Problem, raise_problems
from backcast.project.secrets import MASK, mask_text

if TYPE_CHECKING:
    from backcast.project.config import Project
    from backcast.project.yaml_lines import Tree

SERVER = "postgresql://"

_USER_INFO = re.compile(r"postgresql://(?P<user>(?:\$\{[^{}]*\}|[^:@/?#])*)(?::(?P<password>(?:\$\{[^{}]*\}|[^@])*))?@")
_FROM_ELSEWHERE = re.compile(r"(\$\{(file:[^{}]+|\w+)\})*")


def check_store(text: str) -> str:
    """Raises ValueError, which never repeats an address. What begins with a variable is judged when it is filled in."""
    kind, separator, _ = text.partition("://")
    if not text or (separator and kind != "postgresql" and not text.startswith("${")):
        got = f"an address that begins with {kind}://" if text else "nothing"
        raise ValueError(f"expected the path of a SQLite file or {SERVER}user@host/database, got {got}")
    return text


def shown(text: str) -> str:
    """The text without user and password, also when they hold signs that an address cannot have."""
    return mask_text(re.sub(r"(?<=://).*@", f"{MASK}@", text))


def password_problems(text: str, tree: Tree) -> list[Problem]:
    """A password that stands in the file itself, where everyone who may read the project reads it."""
    address, place = _USER_INFO.match(text), tree.place(("store",))
    password = address["password"] if address is not None else None
    if place.line is None or password is None or _FROM_ELSEWHERE.fullmatch(password):
        return []
    expected = "expected the password as ${NAME} or ${file:path}, or none here and PGPASSWORD or a password file"
    return [Problem(place, ("store",), expected)]


def store_url(project: Project) -> str:
    """The address with its secrets, for `open_store` and nobody else. Raises ConfigError for unset variables."""
    text = filled(project)
    return text if "://" in text else f"sqlite:///{project.root / Path(text).expanduser()}"


def filled(project: Project) -> str:
    """The text of `store` with every `${...}` filled in; in user and password, any character may come from there."""
    text, place = project.config.store, project.place("store")
    address = _USER_INFO.match(text)
    head = address[0] if address is not None else ""
    problems: list[Problem] = []
    fill = project.interpolation.text
    result = fill(head, ("store",), place, problems, encode=lambda value: quote(value, safe=""))
    result += fill(text.removeprefix(head), ("store",), place, problems)
    # A password with a default in the file would be refused: do not offer it.
    raise_problems([replace(each, text=each.text.partition("; write ")[0]) for each in problems])
    return result
