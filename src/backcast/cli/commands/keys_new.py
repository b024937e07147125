from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.new_files import write_new
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of
from backcast.errors import InvalidRequest

_PRIVATE, _PUBLIC = "backcast-signing.key", "backcast-signing.pub"


def keys_new(
    *,
    out: Annotated[Path, Parameter(metavar="DIR", help="Folder to write both files into.")],
    common: Common = DEFAULTS,
) -> None:
    """Make a pair of keys that evidence is signed with."""
    from backcast.attest.keys import PublicKey, new_pair
    from backcast.cli.render.evidence import render_keys

    private, public = out / _PRIVATE, out / _PUBLIC
    for path in (private, public):
        if path.exists():
            raise InvalidRequest(f"{path} exists already", hint="give another folder, or move it away")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidRequest(f"{out} cannot be made: {error.strerror}") from error
    secret, shared = new_pair()
    write_new(private, secret, mode=0o600)
    write_new(public, shared)
    document = {"private": str(private), "public": str(public), "key": PublicKey.read(shared, str(public)).id}
    screen_of(common).show(document, render_keys(document))
