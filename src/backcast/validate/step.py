"""Step 3: stage -> verdict.

Complete, in scope, right schema, right counts, sound keys, digests confirmed; then rules and gates (`measure.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from backcast.model.amendment import Amendment, current_inputs
from backcast.model.change import StageChange
from backcast.model.digest import EMPTY, Digest
from backcast.model.manifest import ChunkPlan, Manifest
from backcast.model.masked import hides
from backcast.model.proof import problem, proofs, summary
from backcast.model.run import Chunk, Event, StageRecord
from backcast.model.scope import EVERYTHING, Predicate
from backcast.model.states import ChunkState
from backcast.model.table import NetChange, PublishMode, Stage
from backcast.model.verdict import Check, Layer, Outcome, PartitionDigest, Verdict, outcome_of
from backcast.model.words import many
from backcast.ports import Engine, Target
from backcast.ports.rules import Scan
from backcast.validate.change import change_of
from backcast.validate.checks import key_checks, schema_check, small_files_check
from backcast.validate.measure import ALL_ROWS, Measured, RuleHelp, Versions, is_asked, judging_of, measure
from backcast.validate.twice import Again, computed_twice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_FATES = ("inserted", "replaced", "removed", "stayed", "absent")


@dataclass(frozen=True, slots=True)
class Validation:
    """What is judged: one staged version of one run."""

    run_id: str
    manifest: Manifest
    stage: Stage
    staged: str
    chunks: list[Chunk]
    records: list[StageRecord]
    target: Target
    engine: Engine
    now: datetime
    help: RuleHelp
    read_back: bool
    """Read the whole stage once more. False: what was observed while writing and the files' own counts serve."""
    amended: tuple[Amendment, ...] = ()
    events: tuple[Event, ...] = ()
    again: Again | None = None
    """Chunks that are computed a second time."""
    whole: bool = True
    """False of a canary: offsets of a log add up over all chunks only, so nothing is said about them."""
    replaced: Predicate | None = None
    """Of a canary: what its whole run will replace."""


def validate(validation: Validation) -> Verdict:
    """Few Spark jobs: one over the staged scope if asked, one for keys, one for live rows if there were any; and those
    of rules and gates.

    Never raises because data is bad.
    """
    manifest, target = validation.manifest, validation.target
    net = target.net_change(validation.stage, validation.staged, manifest.scope.predicate)
    # Files that a scope cuts hold rows beside it, so that their counts say nothing about the scope.
    mode = manifest.settings.publish_mode
    by_chunk, merges = mode is PublishMode.REPLACE, mode is PublishMode.MERGE
    measured = _measured(validation, net)
    digests = _read_back(validation, measured.scan) if by_chunk else {}
    checks = [
        _complete(validation),
        *([] if merges else [_carried_over(validation, net) if manifest.scope.exact else _in_scope(net)]),
        schema_check(manifest.target.identity, target.facts().identity),
        *([_counts(validation, digests), _digests(validation, digests)] if digests else []),
        *([] if digests else [_merged(validation) if merges else _observed(validation)]),
        *([] if manifest.scope.exact else [_files(validation, net)]),
        *small_files_check(net),
        *([] if by_chunk else _added(validation, net, measured.scan)),
        *(_offsets(validation) if validation.whole else []),
        *_keys(validation, net),
        *_live_rows(validation),
        *_computed_twice(validation, digests),
        *measured.checks(),
    ]
    return Verdict(
        run_id=validation.run_id,
        accepted=outcome_of(tuple(checks)) is Outcome.ACCEPTED,
        base=validation.stage.base,
        staged=validation.staged,
        net_change=net.digest(),
        checks=tuple(checks),
        partitions=tuple(PartitionDigest(chunk=name, digest=digest) for name, digest in digests.items()),
        rows=_written(validation),
        at=validation.now,
        results=measured.results,
        change=_change(validation, net, measured),
    )


def _measured(validation: Validation, net: NetChange) -> Measured:
    """Rules and gates; nothing is read where there are none."""
    manifest, stage = validation.manifest, validation.stage
    if not is_asked(manifest):
        return Measured(None, ())
    digests = validation.read_back or manifest.scope.exact
    versions = Versions(validation.target, stage.base, validation.staged, net, digests, replaced=validation.replaced)
    inputs = current_inputs(manifest, validation.amended)
    return measure(judging_of(validation.run_id, manifest, inputs, validation.help, versions))


def _read_back(validation: Validation, scan: Scan | None) -> dict[str, Digest]:
    """Rows and digest of each chunk, as the stage holds them. Rules may have read it with them."""
    if scan is not None:
        return {name: part.digest for name, part in scan.parts.items()}
    if not validation.read_back and not validation.manifest.scope.exact:
        return {}
    rows = validation.target.read(validation.staged, validation.manifest.scope.predicate)
    parts = {chunk.id: chunk.predicate for chunk in validation.manifest.chunks}
    return validation.engine.digests(rows, parts)


def _change(validation: Validation, net: NetChange, measured: Measured) -> StageChange | None:
    before, after = (
        {} if scan is None else {name: part.digest for name, part in scan.parts.items()}
        for scan in (measured.base, measured.scan)
    )
    written = {chunk.chunk_id: chunk.output_rows or 0 for chunk in validation.chunks}
    return change_of(validation.manifest, net, written, before, after)


def _written(validation: Validation) -> int:
    return sum(chunk.output_rows or 0 for chunk in validation.chunks)


def _current(validation: Validation) -> list[StageRecord]:
    """Commits whose rows are still on the stage: not those that a repeated chunk replaced."""
    token = {chunk.chunk_id: chunk.token for chunk in validation.chunks}
    return [each for each in validation.records if all(token.get(name) == each.token for name in each.chunk_ids)]


def _complete(validation: Validation) -> Check:
    planned = {chunk.id for chunk in validation.manifest.chunks}
    staged = {chunk.chunk_id for chunk in validation.chunks if chunk.state is ChunkState.STAGED}
    missing = sorted(planned - staged)
    detail = f"all {len(planned)} chunks staged" if not missing else f"{len(missing)} not staged, first {missing[0]}"
    return Check(name="chunks complete", passed=not missing, detail=detail)


def _in_scope(net: NetChange) -> Check:
    if net.outside:
        return Check(
            name="files in scope",
            passed=False,
            detail=f"{len(net.outside)} of {len(net.added)} staged files may reach out of scope: {net.outside[0].path}",
        )
    return Check(
        name="files in scope",
        passed=True,
        detail=f"{many(len(net.added), 'file')} added, {len(net.removed)} removed, all in scope",
    )


def _counts(validation: Validation, digests: dict[str, Digest]) -> Check:
    wrong = [
        f"{chunk.chunk_id}: wrote {chunk.output_rows}, stage holds {digests[chunk.chunk_id].rows}"
        for chunk in validation.chunks
        if chunk.output_rows != digests[chunk.chunk_id].rows
    ]
    total = sum(digest.rows for digest in digests.values())
    return Check(
        name="counts", passed=not wrong, detail=wrong[0] if wrong else f"{total:,} rows, as many as were written"
    )


def _digests(validation: Validation, digests: dict[str, Digest]) -> Check:
    """What was computed is what can be read: the digests taken while writing against those of the stage."""
    current = _current(validation)
    written, read = EMPTY, EMPTY
    for record in current:
        written = written + record.digest
        for name in record.chunk_ids:
            read = read + digests[name]
    same = written == read
    detail = f"{many(len(current), 'commit')} confirmed, digest {read.short()}" if same else _differing(written, read)
    return Check(name="digests", passed=same, detail=detail)


def _differing(written: Digest, read: Digest) -> str:
    if written.version != read.version:
        return "another version of backcast has written the stage, and its digests cannot be compared: plan again"
    return f"wrote {written.short()}, read {read.short()}"


def _observed(validation: Validation) -> Check:
    """The digests taken while writing count the rows that the ledger has: every chunk is in one, and in one only."""
    current, rows = _current(validation), _written(validation)
    digest = EMPTY
    for record in current:
        digest = digest + record.digest
    detail = f"{many(len(current), 'commit')} observed, {rows:,} rows, digest {digest.short()}"
    if digest.rows != rows:
        detail = f"{digest.rows:,} rows were observed while writing, {rows:,} are on record"
    return Check(name="digests", passed=digest.rows == rows, detail=detail)


def _merged(validation: Validation) -> Check:
    """What became of the rows that were merged, as the stage itself says."""
    chunks = {record.chunk_ids for record in _current(validation)}
    commits = (each for each in validation.target.history(validation.stage) if each.chunk_ids in chunks)
    # A merge that is repeated finds what the first one has done, which nobody recorded: only that one tells.
    first = {each.chunk_ids: each.merged for each in reversed([each for each in commits if each.merged])}
    found = [each for each in first.values() if each is not None]
    told = {name: sum(getattr(each, name) for each in found) for name in _FATES}
    changed = told["inserted"] + told["replaced"]
    detail = ", ".join(f"{number:,} {name}" for name, number in told.items())
    if changed != _written(validation):
        detail = f"{detail}; {_written(validation):,} are on record"
    return Check(name="merged by key", passed=changed == _written(validation), detail=detail)


def _files(validation: Validation, net: NetChange) -> Check:
    """Row counts of the files themselves. Those of a merge also hold rows that it left as they were."""
    merges = validation.manifest.settings.publish_mode is PublishMode.MERGE
    observed = sum(record.digest.rows for record in _current(validation))
    added, written = sum(file.rows for file in net.added), observed if merges else _written(validation)
    detail = f"{added:,} rows in added files, {written:,} written"
    return Check(name="file counts", passed=added == written, detail=detail)


def _carried_over(validation: Validation, net: NetChange) -> Check:
    """An exact scope cuts files: what lies beside it in the files added must be what lay beside it in those removed."""
    scope = validation.manifest.scope.predicate
    parts = {"scope": scope, "beside": Predicate()}
    beside = []
    for version, files in ((validation.stage.base, net.removed), (validation.staged, net.added)):
        rows = validation.target.read_files(version, frozenset(file.path for file in files), scope)
        beside.append(validation.engine.digests(rows, parts)["beside"])
    before, after = beside
    detail = f"{after.rows:,} rows beside the scope, digest {after.short()}"
    if before != after:
        was, became = f"{before.rows:,} ({before.short()})", f"{after.rows:,} ({after.short()})"
        detail = f"rows beside the scope and their digest changed: {was} became {became}"
    return Check(name="rows carried over", passed=before == after, detail=detail)


def _added(validation: Validation, net: NetChange, scan: Scan | None) -> list[Check]:
    """What was written is what can be read, whatever chunk it is of."""
    if scan is None and not validation.read_back:
        return []
    written = sum((record.digest for record in _current(validation)), EMPTY)
    if scan is None:
        read = validation.engine.digests(_added_rows(validation, net), {ALL_ROWS: EVERYTHING})[ALL_ROWS]
    else:
        read = scan.parts[ALL_ROWS].digest
    detail = f"{read.rows:,} rows, digest {read.short()}"
    return [
        Check(
            name="digests",
            passed=read == written,
            detail=detail if read == written else _differing(written, read),
        )
    ]


def _added_rows(validation: Validation, net: NetChange) -> DataFrame:
    paths = frozenset(file.path for file in net.added)
    return validation.target.read_files(validation.staged, paths, EVERYTHING)


def _offsets(validation: Validation) -> list[Check]:
    """Every offset that was pinned is accounted for, input by input."""
    tokens = frozenset(record.token for record in _current(validation))
    found = proofs(validation.events, tokens)
    checks = []
    for pin in current_inputs(validation.manifest, validation.amended):
        if pin.log is None:
            continue
        own = [each for each in found if each.input == pin.name]
        wrong = problem(pin.log, own)
        name = "offsets covered" if len(validation.manifest.inputs) == 1 else f"offsets of {pin.name} covered"
        told = wrong or summary(pin.log, own)
        checks.append(Check(name=name, passed=wrong is None, detail=told, layer=Layer.RECONCILIATION))
    return checks


def _keys(validation: Validation, net: NetChange) -> list[Check]:
    """Over the scope; of rows that were appended or merged, among themselves."""
    settings = validation.manifest.settings
    key = settings.key
    if not key:
        return []
    if settings.publish_mode is PublishMode.REPLACE:
        rows = validation.target.read(validation.staged, validation.manifest.scope.predicate)
    else:
        rows = _added_rows(validation, net)
    return key_checks(rows, key, validation.engine, settings.masked)


def _computed_twice(validation: Validation, digests: dict[str, Digest]) -> list[Check]:
    """Against what the stage holds; of rows that were appended, against what was observed when they were written."""
    again, mode = validation.again, validation.manifest.settings.publish_mode
    if again is None or not again.plans or mode is PublishMode.MERGE:
        return []
    observed = {name: record.digest for record in _current(validation) for name in record.chunk_ids}

    def first(plan: ChunkPlan) -> Digest:
        if plan.id in digests:
            return digests[plan.id]
        if mode is PublishMode.APPEND:
            return observed[plan.id]
        rows = validation.target.read(validation.staged, plan.predicate)
        return validation.engine.digests(rows, {plan.id: plan.predicate})[plan.id]

    return [computed_twice(again, first, validation.engine)]


def _live_rows(validation: Validation) -> list[Check]:
    """Every row that arrived in scope since the first base must be in the result, by its key."""
    if not validation.amended:
        return []
    target, manifest = validation.target, validation.manifest
    scope, key = manifest.scope.predicate, manifest.settings.key
    arrived = [target.read_files(each.base, frozenset(each.arrived), scope) for each in validation.amended]
    live = arrived[0]
    for rows in arrived[1:]:
        live = live.unionByName(rows)
    lost, examples = validation.engine.missing_keys(live, target.read(validation.staged, scope), key)
    total = many(sum(each.arrived_rows for each in validation.amended), "live row")
    detail = f"{total} found by {', '.join(key)}"
    if lost:
        shown = "" if hides(manifest.settings.masked, *key) else f": {'; '.join(examples)}"
        detail = f"{lost:,} of {total} not in the result{shown}"
    return [Check(name="live rows present", passed=not lost, detail=detail, layer=Layer.RECONCILIATION)]
