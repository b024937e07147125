from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.new_files import read_file, write_new
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, SIGNING_KEY, Common, RunId
from backcast.cli.working import screen_of

if TYPE_CHECKING:
    from backcast.attest.keys import SigningKey


def evidence(
    run_id: RunId,
    /,
    *,
    out: Annotated[Path, Parameter(metavar="FILE", help="The file to write; it must not exist.")],
    key: Annotated[
        Path | None,
        Parameter(metavar="KEYFILE", help=f"Private key to sign with; default: the text in {SIGNING_KEY}."),
    ] = None,
    common: Common = DEFAULTS,
) -> None:
    """Write everything on record about a run into one signed file."""
    from backcast.attest.bundle import bundle
    from backcast.cli.render.evidence import render_bundle
    from backcast.model.document import sha256
    from backcast.model.evidence import Bundle

    signing = _signing_key(key)
    with opened(common) as control:
        found = control.evidence(run_id)
    archive = bundle(found, signing)
    write_new(out, archive)
    written = Bundle(
        run_id=found.run.run_id,
        file=str(out),
        bytes=len(archive),
        sha256=sha256(archive),
        signed_with=None if signing is None else signing.public.id,
        changed=found.change,
        compared=bool(found.whole_diff),
    )
    screen_of(common).show(written, render_bundle(written))


def _signing_key(file: Path | None) -> SigningKey | None:
    from backcast.attest.keys import SigningKey

    if file is not None:
        return SigningKey.read(read_file(file), str(file))
    text = os.environ.get(SIGNING_KEY, "")
    return SigningKey.read(text.encode(), SIGNING_KEY) if text.strip() else None
