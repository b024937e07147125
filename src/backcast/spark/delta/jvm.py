"""Every call into Delta's classes behind the JVM gateway. They are not public: `fit` says whether they are there.

Actions cross the gateway as the JSON of the log's protocol, which is public and does not move.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from backcast.spark.delta.paths import TableRoot
from backcast.spark.delta.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DELTA = "org.apache.spark.sql.delta."
_PATH = "org.apache.hadoop.fs.Path"


class DeltaJvm:
    """Delta's own classes for one session."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    @cached_property
    def _none(self) -> Any:
        # Not before it is needed: a JVM that was lost is told by whoever asks it for something, and can say for what.
        return self.java("scala.Option").empty()

    def log(self, location: str) -> Any:
        """The log of the table at that location, which need not exist yet."""
        return self.java(DELTA + "DeltaLog").forTable(self.spark._jsparkSession, location)

    def snapshot(self, log: Any, version: int | None) -> Any:
        """The given version, or the newest as storage has it now."""
        if version is None:
            return log.update(False, self._none, self._none)
        return log.getSnapshotAt(version, self._none, self._none, False)

    def number(self, snapshot: Any) -> int:
        """The version that it is of; -1 where there is no table."""
        return int(snapshot.version())

    def committed_at(self, snapshot: Any) -> int:
        """In milliseconds since 1970."""
        return int(snapshot.timestamp())

    def metadata(self, snapshot: Any) -> dict[str, Any]:
        return dict(json.loads(snapshot.metadata().json())["metaData"])

    def protocol(self, snapshot: Any) -> dict[str, Any]:
        return dict(json.loads(snapshot.protocol().json())["protocol"])

    def files(self, snapshot: Any) -> DataFrame:
        """The add actions of its files, a row each."""
        return self._rows(snapshot.allFiles())

    def removed(self, snapshot: Any) -> DataFrame:
        """The remove actions that it still tells of."""
        return self._rows(snapshot.tombstones())

    def fence(self, snapshot: Any, fence: str) -> int | None:
        """The number that the newest commit with the fence has written beside it; None when none has landed."""
        found = snapshot.transactions().get(fence)
        return int(found.get()) if found.isDefined() else None

    def root(self, log: Any) -> TableRoot:
        return TableRoot(log.dataPath().toUri().toString().rstrip("/"))

    def actions(self, log: Any, version: int) -> list[dict[str, Any]] | None:
        """The actions of one commit in their order; None when its file was cleaned away."""
        if not self.has_commit(log, version):
            return None
        path = self._commit_path(log, version)
        text = log.store().read(path, log.newDeltaHadoopConf()).mkString("\n")
        return [json.loads(line) for line in text.splitlines() if line.strip()]

    def stamp(self, log: Any, version: int) -> tuple[str, int, int] | None:
        """What tells the file of one commit from any other; None when it was cleaned away."""
        path = self._commit_path(log, version)
        files = path.getFileSystem(log.newDeltaHadoopConf())
        if not files.exists(path):
            return None
        status = files.getFileStatus(path)
        return path.toString(), int(status.getModificationTime()), int(status.getLen())

    def has_commit(self, log: Any, version: int) -> bool:
        path = self._commit_path(log, version)
        return bool(path.getFileSystem(log.newDeltaHadoopConf()).exists(path))

    def create_log(self, log: Any, actions: Iterable[dict[str, Any]], checksum: dict[str, Any]) -> bool:
        """Write the first commit of a table that has none, and what it sums up to; False when there is one.

        Delta computes a version that has no checksum in Spark jobs.
        """
        path = self._commit_path(log, 0)
        files = path.getFileSystem(log.newDeltaHadoopConf())
        files.mkdirs(path.getParent())
        if files.exists(path):
            return False
        self._write(log, path, actions, overwrite=False)
        # What an earlier log left behind would be believed.
        self._write(log, self._commit_path(log, 0, "crc"), [checksum], overwrite=True)
        return True

    def frame(self, log: Any, snapshot: Any, adds: Iterable[dict[str, Any]]) -> DataFrame:
        """Every row of exactly these files."""
        from pyspark.sql import DataFrame

        files = self._seq(self.action({"add": add}) for add in adds)
        return DataFrame(log.createDataFrame(snapshot, files, False, self._none), self.spark)

    def transaction(self, log: Any, snapshot: Any) -> Any:
        """A transaction that has read nothing but that snapshot's metadata."""
        return log.startTransaction(self._none, self._some(snapshot))

    def read_fence(self, transaction: Any, fence: str) -> int | None:
        """As `fence`; and a commit with the same one that lands from now on makes this one fail."""
        found = int(transaction.txnVersion(fence))
        return found if found >= 0 else None

    def register_fence(self, transaction: Any, fence: str) -> None:
        """A commit with the same fence that lands from now on makes this one fail."""
        transaction.readTxn().addOne(fence)

    def register_read(self, transaction: Any, condition: str | None) -> None:
        """Whatever is added under the condition from now on, or at all without one, makes the commit fail."""
        if condition is None:
            transaction.readWholeTable()
            return
        parsed = self.spark._jsparkSession.sessionState().sqlParser().parseExpression(condition)
        transaction.trackReadPredicates(self._seq([parsed]), True, True)

    def write_files(self, transaction: Any, rows: DataFrame) -> list[dict[str, Any]]:
        """A job writes the rows as files of the transaction's table; their add actions, which nobody committed."""
        written = transaction.writeFiles(rows._jdf)
        return [json.loads(written.apply(index).json())["add"] for index in range(written.size())]

    def commit(self, transaction: Any, actions: Iterable[dict[str, Any]], note: str, *, appends: bool = False) -> int:
        """Land the actions in one commit of an overwrite, or of an append; the version it became."""
        modes = self.java("org.apache.spark.sql.SaveMode")
        mode = modes.Append if appends else modes.Overwrite
        operation = getattr(self._jvm, DELTA + "DeltaOperations$Write")(
            mode, *(self._none,) * 2, self._some(note), *(self._none,) * 5
        )
        return int(transaction.commit(self._seq(self.action(each) for each in actions), operation))

    def log_retention_millis(self, log: Any, snapshot: Any) -> int | None:
        """How old a commit gets before the log may lose it, read or not; None when nobody cleans the log."""
        metadata = snapshot.metadata()
        return int(log.deltaRetentionMillis(metadata)) if log.enableExpiredLogCleanup(metadata) else None

    def action(self, action: dict[str, Any]) -> Any:
        return self.java(DELTA + "actions.Action").fromJson(json.dumps(action))

    def retention_millis(self, snapshot: Any) -> int:
        """How long the table keeps files that were removed."""
        return int(self.java(DELTA + "DeltaLog").tombstoneRetentionMillis(snapshot.metadata()))

    def storage(self, log: Any) -> Storage:
        return Storage(log.newDeltaHadoopConf(), self.java(_PATH))

    def forget_log(self, location: str) -> None:
        """Delta keeps logs in memory for an hour, also those of a folder that is gone."""
        self.java(DELTA + "DeltaLog").invalidateCache(self.spark._jsparkSession, self.java(_PATH)(location))

    def version(self) -> str:
        return str(self.java("io.delta.package").VERSION())

    def java(self, name: str) -> Any:
        """A class by its full name."""
        return getattr(self._jvm, name)

    def java_list(self, values: Iterable[Any]) -> Any:
        items = self.java("java.util.ArrayList")()
        for value in values:
            items.add(value)
        return items

    def _rows(self, dataset: Any) -> DataFrame:
        from pyspark.sql import DataFrame

        return DataFrame(dataset.toDF(), self.spark)

    def _write(self, log: Any, path: Any, documents: Iterable[dict[str, Any]], *, overwrite: bool) -> None:
        lines = self.java_list(json.dumps(each) for each in documents)
        log.store().write(path, self._scala(lines).iterator(), overwrite, log.newDeltaHadoopConf())

    def _commit_path(self, log: Any, version: int, kind: str = "json") -> Any:
        return self.java(_PATH)(log.logPath(), f"{version:020d}.{kind}")

    @property
    def _jvm(self) -> Any:
        return self.spark._jvm

    def _some(self, value: Any) -> Any:
        return self.java("scala.Option").apply(value)

    def _scala(self, values: Any) -> Any:
        return self.java("scala.jdk.javaapi.CollectionConverters").asScala(values)

    def _seq(self, values: Iterable[Any] | Sequence[Any]) -> Any:
        return self._scala(self.java_list(values)).toSeq()
