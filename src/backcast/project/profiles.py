"""What may change a project without touching its file: a profile, `BACKCAST__...` variables, and `${...}` in texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from backcast.project.problems import KeyPath, Place, Problem, raise_problems, suggestion
from backcast.project.yaml_lines import Tree, Value, parse_yaml

ENVIRONMENT_PREFIX = "BACKCAST__"
_EXPRESSION = re.compile(r"\$\$\{|\$\{(?P<inner>[^{}]*)\}|(?P<open>\$\{)")
_VARIABLE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


def choose_profile(tree: Tree, profile: str | None) -> Tree:
    """The tree with the profile laid over it and the section `profiles` gone."""
    base = {key: value for key, value in tree.mapping.items() if key != "profiles"}
    profiles = tree.mapping.get("profiles") or {}
    if not isinstance(profiles, dict) or not all(isinstance(each, dict | None) for each in profiles.values()):
        raise_problems([Problem(tree.place(("profiles",)), ("profiles",), "expected profiles by name, each with keys")])
    if profile is None:
        return Tree(base, tree.places)
    if profile not in profiles:
        text = f"there is no profile {profile!r}{suggestion(profile, profiles)}"
        raise_problems([Problem(tree.place(("profiles",)), ("profiles",), text)])
    here: KeyPath = ("profiles", profile)
    places = {path[2:]: place for path, place in tree.places.items() if path[:2] == here and len(path) > 2}
    return overlay(Tree(base, tree.places), Tree(profiles[profile] or {}, places))


def overlay(base: Tree, over: Tree) -> Tree:
    """Mappings are merged key by key; anything else in `over` replaces what was there."""
    places = dict(base.places)
    value = _merge(base.value, over.value, (), places)
    places.update(over.places)
    return Tree(value, places)


def _merge(base: Value, over: Value, path: KeyPath, places: dict[KeyPath, Place]) -> Value:
    if isinstance(base, dict) and isinstance(over, dict):
        merged = dict(base)
        for key, value in over.items():
            merged[key] = _merge(base[key], value, (*path, key), places) if key in base else value
        return merged
    for old in [each for each in places if each[: len(path)] == path]:
        del places[old]
    return over


def apply_environment(tree: Tree, environ: Mapping[str, str]) -> Tree:
    """`BACKCAST__SPARK__MASTER=local[1]` sets `spark.master`. A value in brackets or braces is read as YAML."""
    problems: list[Problem] = []
    for name in sorted(environ):
        if not name.startswith(ENVIRONMENT_PREFIX):
            continue
        place = Place(f"environment variable {name}")
        segments = name.removeprefix(ENVIRONMENT_PREFIX).split("__")
        if not all(segments):
            problems.append(Problem(place, (), "expected a name like BACKCAST__SPARK__MASTER"))
            continue
        path = _existing_path(tree.value, segments)
        text = environ[name]
        value = parse_yaml(text, str(place)).value if text[:1] in ("[", "{") else text
        change: Any = value
        for key in reversed(path):
            change = {key: change}
        if path[:-1] and _is_scalar_above(tree.value, path):
            problems.append(Problem(place, path, "the key above it holds a value and no keys"))
            continue
        tree = overlay(tree, Tree(change, {path: place}))
    raise_problems(problems)
    return tree


def _existing_path(value: Value, segments: list[str]) -> KeyPath:
    """Variables cannot spell lower case, dots and dashes: take the key that is there, else the lower-case name."""
    path: list[str | int] = []
    for segment in segments:
        known = value if isinstance(value, dict) else {}
        plain = _plain(segment)
        key = next((each for each in known if _plain(each) == plain), segment.lower())
        path.append(key)
        value = known.get(key)
    return tuple(path)


def _plain(key: str) -> str:
    return re.sub(r"[.-]", "_", key).lower()


def _is_scalar_above(value: Value, path: KeyPath) -> bool:
    for key in path[:-1]:
        if not isinstance(value, dict):
            return value is not None
        value = value.get(str(key))
    return isinstance(value, str | list)


class Interpolation:
    """Fills `${VAR}`, `${VAR:-default}` and `${file:path}`; `$${` is a literal `${`. Its results are never shown."""

    def __init__(self, root: Path, environ: Mapping[str, str]) -> None:
        self._root = root
        self._environ = environ

    def __repr__(self) -> str:
        return "Interpolation(...)"

    def tree(self, tree: Tree, skip: Callable[[KeyPath], bool]) -> Tree:
        """The tree with every text filled in except those at skipped paths. Raises ConfigError."""
        problems: list[Problem] = []

        def walk(value: Value, path: KeyPath) -> Value:
            match value:
                case dict():
                    return {key: walk(item, (*path, key)) for key, item in value.items()}
                case list():
                    return [walk(item, (*path, number)) for number, item in enumerate(value)]
                case str() if not skip(path):
                    return self.text(value, path, tree.place(path), problems)
            return value

        filled = walk(tree.value, ())
        raise_problems(problems)
        return Tree(filled, tree.places)

    def text(
        self,
        text: str,
        path: KeyPath,
        place: Place,
        problems: list[Problem],
        *,
        encode: Callable[[str], str] = str,
    ) -> str:
        """One text with every value filled in as `encode` spells it; what has no value is added to the problems."""

        def replace(match: re.Match[str]) -> str:
            if match.group() == "$${":
                return "${"
            if match["open"]:
                problems.append(Problem(place, path, "expected `}` after `${`"))
                return ""
            filled = self._fill(match["inner"])
            if isinstance(filled, _Missing):
                problems.append(Problem(place, path, filled.text))
                return ""
            return encode(filled)

        return _EXPRESSION.sub(replace, text)

    def _fill(self, inner: str) -> str | _Missing:
        if inner.startswith("file:"):
            name = inner.removeprefix("file:")
            try:
                return (self._root / name).read_text(encoding="utf-8").rstrip("\r\n")
            except (OSError, UnicodeDecodeError, ValueError):
                return _Missing(f"the file {name!r} cannot be read as text")
        match = _VARIABLE.fullmatch(inner)
        if match is None:
            return _Missing("expected ${NAME}, ${NAME:-default} or ${file:path}")
        value = self._environ.get(match["name"])
        if match["default"] is not None:
            return value or match["default"]
        if value is None:
            name = match["name"]
            return _Missing(f"the environment variable {name} is not set; write ${{{name}:-default}} to give a default")
        return value


class _Missing:
    """Why an expression has no value."""

    def __init__(self, text: str) -> None:
        self.text = text
