"""YAML 1.2 as a plain tree in which every scalar stays text, together with the line of every key.

Text stays text because the models decide what it means: `version: 1.10` is the version 1.10 and not the number 1.1, and
a value from the environment has the same form as one from the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from backcast.errors import ConfigError
from backcast.project.problems import KeyPath, Place, Problem, raise_problems

Value = str | list[Any] | dict[str, Any] | None
_NULL = "tag:yaml.org,2002:null"
_PLAIN = ("str", "int", "float", "bool", "null", "timestamp", "value", "merge")
_PLAIN_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in _PLAIN)
_MOST_NODES = 50_000


@dataclass(frozen=True, slots=True)
class Tree:
    """A value, and for the path of each key and item the place it was written at."""

    value: Value
    places: Mapping[KeyPath, Place] = field(default_factory=dict)

    @property
    def mapping(self) -> dict[str, Any]:
        """The value when it has keys, else no keys."""
        return self.value if isinstance(self.value, dict) else {}

    def place(self, path: KeyPath) -> Place:
        """Where the path was written, or the nearest key above it."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place("backcast.yaml"))

    def scalars(self) -> Iterator[tuple[KeyPath, str]]:
        """Every text with its path, in order."""
        yield from _scalars(self.value, ())


def read_yaml(file: Path, shown_as: str) -> Tree:
    """The file's tree. Raises ConfigError, with all duplicate keys and unusable nodes named at once."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"there is no {shown_as}", hint="run `backcast init` to write one", file=shown_as) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown_as}: byte {error.start} is not UTF-8 text", file=shown_as) from None
    except OSError as error:
        raise ConfigError(f"{shown_as}: cannot be read: {error.strerror}", file=shown_as) from None
    tree = parse_yaml(text, shown_as)
    if tree.value is None:
        hint = "run `backcast init` in an empty folder to see a complete one"
        raise ConfigError(f"{shown_as}: expected a project, got an empty file", hint=hint, file=shown_as)
    if not isinstance(tree.value, dict):
        raise ConfigError(f"{shown_as}:1: expected keys such as `name:` at the top", file=shown_as, line=1)
    return tree


def parse_yaml(text: str, shown_as: str) -> Tree:
    """The text's tree. Never builds Python objects: tags are refused."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    try:
        root = YAML(pure=True).compose(text)
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _bad_yaml(shown_as, line, f"character {error.character!r} is not allowed") from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _bad_yaml(shown_as, mark.line + 1 if mark else 1, _reason(error)) from None
    except YAMLError as error:
        raise _bad_yaml(shown_as, 1, str(error).splitlines()[0]) from None
    except RecursionError:
        raise _bad_yaml(shown_as, 1, "it is nested too deeply") from None
    builder = _Builder(shown_as)
    value = None if root is None else builder.build(root, (), ())
    raise_problems(builder.problems)
    return Tree(value, builder.places)


def _reason(error: Any) -> str:
    problem = str(error.problem or error.context or "it cannot be read")
    if "'\\t'" in problem:
        return "a tab; indent with spaces"
    return f"{problem}, {error.context}" if error.context and error.context != problem else problem


def _bad_yaml(file: str, line: int, reason: str) -> ConfigError:
    return ConfigError(f"{file}:{line}: bad YAML: {reason}", file=file, line=line, key="")


class _Builder:
    """Turns YAML nodes into plain values and notes where each was."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.places: dict[KeyPath, Place] = {}
        self.problems: list[Problem] = []
        self._nodes = 0

    def build(self, node: Any, path: KeyPath, above: tuple[int, ...]) -> Value:
        from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

        place = Place(self.file, node.start_mark.line + 1)
        self.places.setdefault(path, place)
        self._nodes += 1
        if id(node) in above or self._nodes > _MOST_NODES:
            raise _bad_yaml(self.file, node.start_mark.line + 1, "aliases make it refer to itself or grow without end")
        above = (*above, id(node))
        if isinstance(node, ScalarNode):
            return self._scalar(node, path, place)
        if isinstance(node, SequenceNode):
            return [self.build(item, (*path, number), above) for number, item in enumerate(node.value)]
        if isinstance(node, MappingNode):
            return self._mapping(node, path, above)
        return None

    def _scalar(self, node: Any, path: KeyPath, place: Place) -> str | None:
        tag = str(node.tag)
        if tag not in _PLAIN_TAGS:
            self.problems.append(Problem(place, path, f"expected a plain value, got the tag {tag}"))
        if tag == _NULL and node.style is None:
            return None
        return str(node.value)

    def _mapping(self, node: Any, path: KeyPath, above: tuple[int, ...]) -> dict[str, Value]:
        from ruamel.yaml.nodes import ScalarNode

        found: dict[str, Value] = {}
        for key, item in node.value:
            place = Place(self.file, key.start_mark.line + 1)
            if not isinstance(key, ScalarNode):
                self.problems.append(Problem(place, path, "expected a name as key, got a list or mapping"))
                continue
            name = str(key.value)
            here = (*path, name)
            if name in found:
                first = self.places[here].line
                self.problems.append(Problem(place, here, f"the key is there twice, first on line {first}"))
                continue
            self.places[here] = place
            found[name] = self.build(item, here, above)
        return found


def _scalars(value: Value, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _scalars(item, (*path, number))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _scalars(item, (*path, key))
