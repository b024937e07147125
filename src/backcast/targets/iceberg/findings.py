"""What Iceberg makes impossible or risky for a table as it is."""

from __future__ import annotations

from backcast.model.finding import Finding, block
from backcast.model.table import FileList, TableFacts

_ROW_LEVEL_MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")


def findings(facts: TableFacts, files: FileList) -> list[Finding]:
    found, table = [], facts.identity.name
    if facts.identity.format_version >= 3:
        found.append(
            block(
                "target.format-v3",
                f"{table} has format version 3, whose row lineage a publish would reset",
                "use a table of format version 2",
            )
        )
    modes = [key for key in _ROW_LEVEL_MODES if facts.properties.get(key) == "merge-on-read"]
    if modes:
        found.append(
            block(
                "target.merge-on-read",
                f"{table} sets {', '.join(modes)} to merge-on-read; an undo could bring deleted rows back",
                "set these to copy-on-write in a quiet moment and compact the table once",
            )
        )
    if files.has_deletes:
        found.append(
            block(
                "target.delete-files",
                f"delete files apply to rows in scope of {table}",
                "rewrite the scope's data files once (rewrite_data_files with delete-file-threshold 1)",
            )
        )
    return found
