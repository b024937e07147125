"""Keeping secrets out of everything that is printed, stored or hashed."""

from __future__ import annotations

import re
from collections.abc import Mapping

from backcast.project.problems import KeyPath

MASK = "***"
_SECRET_KEY = re.compile(
    r"pass(word|wd|phrase)|token|secret|credential|user|private|auth|(^|[._-])(key|sas|sig)([._-]|$)", re.IGNORECASE
)
_USER_INFO = re.compile(r"(?<=//)[^/@\s]*@")
_PARAMETER = re.compile(r"(?P<name>[?&;][^=&;]*(?:pass|token|secret|user|key)[^=&;]*=)[^&;]*", re.IGNORECASE)


def is_secret_key(key: str) -> bool:
    """Whether an option of this name is treated as secret. Too many is harmless; too few is not."""
    return _SECRET_KEY.search(key) is not None


def masked(options: Mapping[str, str]) -> dict[str, str]:
    """The options as they may be shown: secret ones, and secrets inside URIs, replaced."""
    return {key: MASK if is_secret_key(key) else mask_text(value) for key, value in options.items()}


def mask_text(text: str) -> str:
    """A URI without user, password and secret parameters."""
    return _PARAMETER.sub(rf"\g<name>{MASK}", _USER_INFO.sub(f"{MASK}@", text))


def is_secret_path(path: KeyPath) -> bool:
    """Whether a value at this path of `backcast.yaml` must not be repeated in a message."""
    if path[:1] == ("catalogs",) or path[:2] == ("spark", "conf"):
        return path[-1] != "type"
    if path[:1] == ("sources",):
        return any(part in ("security", "options") for part in path) or path[-1] in ("username", "password")
    return path == ("store",)
