from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.new_files import read_file
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of, working

if TYPE_CHECKING:
    from backcast.model.evidence import Verified


def verify(
    file: Annotated[Path, Parameter(metavar="FILE", help="What `backcast evidence` wrote.")],
    /,
    *,
    key: Annotated[
        Path | None, Parameter(metavar="PUB", help="Public key of whoever signed it; without it nobody is proven.")
    ] = None,
    table: Annotated[
        bool, Parameter(help="Ask the table, too: its commits name the history. Needs the project and Spark.")
    ] = False,
    common: Common = DEFAULTS,
) -> None:
    """Check such a file, on any machine."""
    from backcast.attest.keys import PublicKey
    from backcast.attest.verify import verify as verify_bundle
    from backcast.cli.render.evidence import render_verified

    archive = read_file(file)
    found = verify_bundle(archive, None if key is None else PublicKey.read(read_file(key), str(key)))
    if table:
        found = found.model_copy(update={"witness": _asked(archive, found, common)})
    screen_of(common).show(found, render_verified(found, str(file)))


def _asked(archive: bytes, found: Verified, common: Common) -> tuple[str, ...]:
    from backcast.attest.witness import confirmed
    from backcast.model.evidence import Witnesses

    asked = {"dataset": found.dataset, "run": found.run_id, "versions": list(found.published)}
    with working(common, "verify-witness") as work:
        answer = work.call("verify-witness", "asking the table", **asked)
    return confirmed(archive, found, Witnesses.model_validate(answer))
