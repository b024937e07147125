"""The table as witness: its commits name the newest event of the run when they were made."""

from __future__ import annotations

import json

from backcast.attest.archive import unpacked
from backcast.errors import NotVerified
from backcast.model.evidence import Verified, Witness, Witnesses
from backcast.model.lineage import WITNESS, WITNESS_NUMBER


def confirmed(archive: bytes, verified: Verified, told: Witnesses) -> tuple[str, ...]:
    """What the table confirms of a bundle that was verified, in sentences.

    Raises NotVerified, also when the table knows of a publish or an undo that the bundle does not tell.
    """
    if told.uuid != verified.uuid:
        raise NotVerified(
            f"{told.table} is not the table of this run: it was made anew since, or is another one",
            hint="give the project whose table it is with --project",
        )
    lines = unpacked(archive)["events.jsonl"].splitlines()
    heads = [str(json.loads(line)["sha256"]) for line in lines]
    if told.others:
        raise NotVerified(
            f"{verified.run_id} made version {', '.join(told.others)} of {told.table}, which the bundle does not tell: "
            "it is older than that, or hides it",
            hint=f"ask for one that was made since: backcast evidence {verified.run_id} --out FILE",
            versions=", ".join(told.others),
        )
    confirmations = (_confirmed(verified, each, heads) for each in told.versions)
    return *confirmations, f"it knows of no {'other ' if told.versions else ''}publish or undo of this run"


def _confirmed(verified: Verified, told: Witness, heads: list[str]) -> str:
    says = told.properties
    for key, wanted in (("backcast.run", verified.run_id), ("backcast.manifest", verified.manifest)):
        if says.get(key) != wanted:
            raise NotVerified(
                f"version {told.version} of {verified.table} was not made by this run and plan",
                version=told.version,
                property=key,
            )
    told_number = says.get(WITNESS_NUMBER, "0")
    number = int(told_number) if told_number.isdecimal() else len(heads) + 1
    if not number:
        return f"version {told.version} names this run and this plan; it is of a release that told no more"
    if number > len(heads) or heads[number - 1] != says.get(WITNESS):
        raise NotVerified(
            f"version {told.version} of {verified.table} witnesses another history: event {number} was changed since",
            version=told.version,
            event=number,
        )
    return f"version {told.version} names this run, this plan and event {number} with the same hash"
