"""What is wrong with the state of a query: files that a version needs, their bytes, and versions of another past."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from backcast.model.checkpoint import Damage, Severity, StoreKind
from backcast.model.checkpoint_log import Committed
from backcast.streams.checkpoint.content import Unsound, check_blocks, check_schema, check_zip, fits_checksum
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.lost_state import GO_BACK, LOAD, lost_state, missing
from backcast.streams.checkpoint.state_files import MissingState, Operator, StateFile, Store


class StateDamages:
    """Judges the state of one look at a checkpoint; each file is read once."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._judged: dict[Path, Damage | None] = {}

    def damages(self) -> Iterator[Damage]:
        """What a restart would meet, then what lies ahead of it."""
        if self._checkpoint.planned is None and self._checkpoint.committed is None:
            yield from self._orphans()
            return
        yield from self.problems(self._checkpoint.next_batch)
        yield from self._ahead()

    def problems(self, version: int) -> list[Damage]:
        """Why that version of any state cannot be loaded, or would be wrong."""
        if version <= 0:
            return []
        commit = self._checkpoint.readable_commit(version - 1)
        found = [*lost_state(self._checkpoint, commit), *self._schemas()]
        told = {each.file for each in found}
        for operator in self._checkpoint.operators:
            if operator.newer:
                found.append(self._newer(f"state/{operator.number}/_metadata", operator.newer))
            for store in operator.stores:
                if store.files or f"state/{store.operator}/{store.partition}" not in told:
                    found += self._store(operator, store, version, commit)
        return found

    def _schemas(self) -> Iterator[Damage]:
        """A schema that is gone is written anew; one that cannot be read stops the query."""
        folders = {store.folder for operator in self._checkpoint.operators for store in operator.stores}
        for file in sorted(folder / "_metadata" / "schema" for folder in folders):
            if not file.is_file():
                continue
            try:
                check_schema(file)
                _refuse_changed(file)
            except (Unsound, OSError) as error:
                if isinstance(error, Unsound) and error.kind == "newer":
                    yield self._newer(str(file.relative_to(self._checkpoint.root)), str(error))
                    continue
                yield Damage(
                    kind="state-schema",
                    file=str(file.relative_to(self._checkpoint.root)),
                    severity=Severity.FAILS,
                    what=str(error),
                    at_restart="the first batch fails: the schema of its state cannot be read, or is another one",
                    remedy="remove it and the checksum beside it: Spark writes it anew",
                )

    def _newer(self, file: str, what: str) -> Damage:
        return Damage(
            kind="state-newer",
            file=file,
            severity=Severity.UNKNOWN,
            what=what,
            at_restart="only a Spark that writes this version can say",
            remedy="use a release of backcast that knows it",
        )

    def _store(self, operator: Operator, store: Store, version: int, commit: Committed | None) -> list[Damage]:
        ids = () if commit is None else commit.state_ids.get(str(operator.number), ())
        unnamed = self._unnamed(store, version, ids) if ids else []
        if unnamed:
            return unnamed
        try:
            chain = store.chain(version)
        except MissingState as error:
            file = str(store.folder.relative_to(self._checkpoint.root) / error.name)
            said = (
                "CANNOT_READ_DELTA_FILE_NOT_EXISTS"
                if store.kind is StoreKind.HDFS
                else "CANNOT_READ_STREAMING_STATE_FILE"
            )
            return [missing(file, f"it is not there, and version {version} needs it", f"{LOAD}.{said}")]
        return [damage for each in chain if (damage := self._judge(store, each)) is not None]

    def _unnamed(self, store: Store, version: int, ids: tuple[tuple[str, ...], ...]) -> list[Damage]:
        """Where commits name the files, one of the named ones must be there."""
        wanted = set(ids[store.partition]) if store.partition < len(ids) else set()
        if any(each.version == version and each.id in wanted for each in store.files):
            return []
        file = str(store.folder.relative_to(self._checkpoint.root) / f"{version}_*.changelog")
        return [missing(file, f"none of the files is there that commit {version - 1} names")]

    def _judge(self, store: Store, file: StateFile) -> Damage | None:
        if file.path not in self._judged:
            self._judged[file.path] = self._judgement(store, file)
        return self._judged[file.path]

    def _judgement(self, store: Store, file: StateFile) -> Damage | None:
        relative = str(file.path.relative_to(self._checkpoint.root))
        try:
            if file.kind == "zip":
                self._zip(store, file)
            else:
                self._blocks(file)
        except Unsound as error:
            return self._unsound(error, error.file or relative, file)
        except OSError as error:
            return self._unsound(Unsound("garbled", f"it cannot be read: {error.strerror}"), relative, file)
        return None

    def _blocks(self, file: StateFile) -> None:
        check_blocks(file.path, bodies=not fits_checksum(file.path))
        _refuse_changed(file.path)

    def _zip(self, store: Store, file: StateFile) -> None:
        for name, size in check_zip(file.path):
            part = store.folder / "SSTs" / name
            where = str(part.relative_to(self._checkpoint.root))
            if not part.is_file():
                raise Unsound("sst-missing", f"it is not there, and {file.path.name} needs it", where)
            if part.stat().st_size != size:
                raise Unsound("cut", f"it has {part.stat().st_size} bytes of {size}", where)
            if fits_checksum(part) is False:
                raise Unsound("garbled", "it does not fit the checksum beside it", where)
        if fits_checksum(file.path) is False:
            raise Unsound("stale-checksum", "it does not fit the checksum beside it")

    def _unsound(self, error: Unsound, where: str, file: StateFile) -> Damage:
        silent = file.kind in ("delta", "snapshot", "changelog") and error.kind in ("cut", "changed")
        return Damage(
            kind=f"state-{error.kind}",
            file=where,
            severity=Severity.SILENT if silent else Severity.FAILS,
            what=str(error),
            at_restart=_silently(error) if silent else f"{LOAD}.UNCATEGORIZED",
            remedy="the archive itself is whole: remove the checksum" if error.kind == "stale-checksum" else GO_BACK,
        )

    def _ahead(self) -> Iterator[Damage]:
        """State that batches left which the logs do not know: a rewind by hand, without the state."""
        newest = self._checkpoint.planned if self._checkpoint.planned is not None else -1
        yield from self._beyond(newest + 1, f"batch {newest} is the last one that is planned")

    def _orphans(self) -> Iterator[Damage]:
        yield from self._beyond(0, "no batch is planned or committed")

    def _beyond(self, newest: int, why: str) -> Iterator[Damage]:
        for operator in self._checkpoint.operators:
            ahead = [each for store in operator.stores for each in store.files if each.version > newest]
            if not ahead:
                continue
            named = any(each.id for each in ahead)
            harmful = any(each.whole for each in ahead) and operator.kind in (StoreKind.HDFS, StoreKind.CHANGELOG)
            silent = (harmful or newest == 0) and not named
            first = min(ahead, key=lambda each: each.version)
            yield Damage(
                kind="state-ahead",
                file=str(first.path.relative_to(self._checkpoint.root)),
                severity=Severity.SILENT if silent else Severity.HARMLESS,
                what=f"{len(ahead)} state files of versions after {newest} are there, and {why}",
                at_restart="once the stream gets to that version again, Spark loads state of the other past: windows "
                "get lost or counted wrongly"
                if silent
                else "they are written anew before anything reads them",
                remedy="rewind it to its last batch: that leaves them out" if silent else "",
            )


def _refuse_changed(file: Path) -> None:
    if fits_checksum(file) is False:
        raise Unsound("changed", "it does not fit the checksum beside it")


def _silently(error: Unsound) -> str:
    if error.kind == "cut":
        return f"cut within its last bytes it loads without a word; cut deeper, {LOAD}"
    return "Spark does not compare them and loads what stands there"
