"""Tokens by which people are recognised. `python -m backcast.project.tokens` makes one, and the hash of it."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sys

_FORM = re.compile(r"scrypt:[0-9a-f]{32}:[0-9a-f]{64}")
_COST = {"n": 2**14, "r": 8, "p": 1, "dklen": 32}


def token_hash(token: str, salt: bytes | None = None) -> str:
    """What a policy file may hold: it does not tell the token."""
    salt = secrets.token_bytes(16) if salt is None else salt
    return f"scrypt:{salt.hex()}:{hashlib.scrypt(token.encode(), salt=salt, **_COST).hex()}"


def is_token_hash(text: str) -> bool:
    return _FORM.fullmatch(text) is not None


def fits(token: str, known: str) -> bool:
    """Whether the hash is that of the token."""
    salt = bytes.fromhex(known.split(":")[1])
    return hmac.compare_digest(token_hash(token, salt), known)


def main() -> None:
    token = secrets.token_urlsafe(32)
    sys.stdout.write(
        f"token: {token}\n"
        "       for the person alone, as BACKCAST_TOKEN or in the file that BACKCAST_TOKEN_FILE names\n"
        f"hash:  {token_hash(token)}\n"
        "       for the policy file: people.NAME.token\n"
    )


if __name__ == "__main__":
    main()
