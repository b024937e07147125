"""Words of others (drivers, catalogs, storage) without the secrets that the addresses in them may hold."""

from __future__ import annotations

import re

_MASK = "***"
_USER_INFO = re.compile(r"(?<=://)[^/@\s:]*:[^/@\s]*@")
_PARAMETER = re.compile(
    r"(?P<name>[?&;][^=&;\s]*(?:pass|pwd|token|secret|user|key|sig)[^=&;\s]*=)[^&;\s]+", re.IGNORECASE
)


def without_secrets(text: str) -> str:
    """The text with user, password and secret parameters of every address in it replaced."""
    return _PARAMETER.sub(rf"\g<name>{_MASK}", _USER_INFO.sub(f"{_MASK}@", text))
