"""Imports of the user's project: always fresh from disk, and with the list of project files they pulled in."""

from __future__ import annotations

import ast
import importlib
import sys
import sysconfig
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from types import ModuleType

from backcast.model.document import sha256

_lock = threading.RLock()
_NEVER_TOUCHED = frozenset({"__main__", "__mp_main__", "backcast"})
_loaded_here: set[str] = set()
_roots: set[str] = set()


class ProjectModules:
    """The modules of one project root. Another project's module of the same name is never taken for one of them."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def load(self, name: str) -> tuple[ModuleType, dict[str, str]]:
        """The module, imported anew, and the project files behind it with their hashes, by path relative to the root.

        Counts modules that the import pulled in and those that are only imported later, inside functions.
        """
        with _lock, self._first_on_path():
            importlib.invalidate_caches()
            kept = self._take_out(name)
            try:
                module = importlib.import_module(name)
            finally:
                loaded = self._loaded()
                _loaded_here.update(loaded)
                _put_back(kept)
            files = {Path(each.__file__).resolve() for each in loaded.values() if each.__file__}
            return module, hashes(self.root, files | self._named_in(files))

    def _take_out(self, name: str) -> dict[str, ModuleType]:
        """Remove this project's modules, and other projects' that have the wanted name. Returns what is to be put back.

        What somebody else imported (a test, a notebook) is put back afterwards; what came from here is not.
        """
        top = name.partition(".")[0]
        ours = self._loaded()
        # Collected before anything is removed: a package without a file asks its parent where it lies.
        strangers = [
            key
            for key, module in list(sys.modules.items())
            if key.partition(".")[0] == top and key not in ours and not _is_installed(module)
        ]
        for key in (*ours, *strangers):
            del sys.modules[key]
        return {key: module for key, module in ours.items() if key not in _loaded_here}

    def _loaded(self) -> dict[str, ModuleType]:
        """The project's modules that are loaded now; packages without a file among them."""
        return {
            key: module
            for key, module in list(sys.modules.items())
            if key.partition(".")[0] not in _NEVER_TOUCHED
            and any(not _in_environment(path) and self._owns(Path(path)) for path in _paths(module))
        }

    def _named_in(self, files: set[Path]) -> set[Path]:
        """Project files that the given ones import anywhere in their text, and so on."""
        known: set[Path] = set()
        waiting = [file for file in files if file.suffix == ".py"]
        while waiting:
            file = waiting.pop()
            if file in known:
                continue
            known.add(file)
            for name in _imports(file, self.root):
                waiting += [each for each in self._files_of(name) if each not in known]
        return known

    def _files_of(self, name: str) -> list[Path]:
        """The file of a module and of the packages above it, as far as they belong to the project."""
        parts = name.split(".")
        candidates = [self.root.joinpath(*parts).with_suffix(".py")]
        candidates += [self.root.joinpath(*parts[:count], "__init__.py") for count in range(1, len(parts) + 1)]
        return [each.resolve() for each in candidates if each.is_file() and self._owns(each)]

    def _owns(self, path: Path) -> bool:
        """Below the root, and not part of an installed environment that happens to lie there."""
        return path.resolve().is_relative_to(self.root) and not _in_environment(str(path))

    @contextmanager
    def _first_on_path(self) -> Iterator[None]:
        """The root stays on the path, first: functions import later, and Spark's workers look there too.

        Roots of other projects leave it: a package with `__init__.py` there would win over one without it here.
        """
        text = str(self.root)
        if sys.path[:1] != [text]:
            sys.path[:] = [text, *(each for each in sys.path if each != text and each not in _roots)]
        _roots.add(text)
        before = sys.dont_write_bytecode
        # Bytecode of a file changed twice within one second would be taken for the newer one.
        sys.dont_write_bytecode = True
        try:
            yield
        finally:
            sys.dont_write_bytecode = before


def _put_back(kept: dict[str, ModuleType]) -> None:
    for key, module in kept.items():
        if key in sys.modules:
            continue
        sys.modules[key] = module
        above, _, last = key.rpartition(".")
        if above in sys.modules and not hasattr(sys.modules[above], last):
            setattr(sys.modules[above], last, module)


def hashes(root: Path, files: set[Path]) -> dict[str, str]:
    """SHA-256 of each file, by its path relative to the root."""
    root = root.resolve()
    return {each.relative_to(root).as_posix(): sha256(each.read_bytes()) for each in sorted(files)}


def unchanged(root: Path, files: Mapping[str, str]) -> bool:
    """Whether every file still has the given hash."""
    try:
        return hashes(root, {root.resolve() / name for name in files}) == dict(files)
    except OSError:
        return False


def _paths(module: ModuleType) -> list[str]:
    file = getattr(module, "__file__", None)
    if file:
        return [str(file)]
    try:
        return [str(each) for each in getattr(module, "__path__", ())]
    except (TypeError, KeyError):
        return []


def _is_installed(module: ModuleType) -> bool:
    """Part of the interpreter or of an installed package: never a leftover of another project."""
    paths = _paths(module)
    return not paths or any(_in_environment(path) for path in paths)


@cache
def _in_environment(path: str) -> bool:
    """Remembered, because a process has thousands of modules and nearly all of them are installed ones."""
    absolute = Path(path).resolve()
    return any(absolute.is_relative_to(folder) for folder in _environment_folders())


@lru_cache
def _environment_folders() -> tuple[Path, ...]:
    found = {Path(sysconfig.get_path(key)).resolve() for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    return tuple(sorted(found))


def _imports(file: Path, root: Path) -> set[str]:
    """Dotted names that the file imports; for `from a import b` both a and a.b, since b may be a module."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError, OSError):
        return set()
    package = file.parent.relative_to(root).parts
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            names.update([base] if base else [])
            names.update(f"{base}.{each.name}" if base else each.name for each in node.names if each.name != "*")
    return names
