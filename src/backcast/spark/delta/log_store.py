"""Whether the storage of a Delta log keeps writers of several processes apart. Pure.

A version of a table is one file that must be created once. Where storage cannot be asked for that, Delta looks first
and writes then, under a lock that only threads of one JVM share: of two processes the later one replaces the other's
commit.
"""

from __future__ import annotations

from collections.abc import Callable

_OWN = ""
"""The log store that Delta chooses by itself."""

_KEPT_APART: dict[str, frozenset[str]] = {
    **dict.fromkeys(("hdfs", "viewfs", "webhdfs", "swebhdfs"), frozenset({_OWN, "HDFSLogStore"})),
    **dict.fromkeys(("abfs", "abfss", "adl", "wasb", "wasbs"), frozenset({_OWN, "AzureLogStore"})),
    "gs": frozenset({_OWN, "GCSLogStore"}),
    **dict.fromkeys(("s3", "s3a", "s3n"), frozenset({"S3DynamoDBLogStore"})),
    "cos": frozenset({"IBMCOSLogStore"}),
    "oci": frozenset({"OracleCloudLogStore"}),
}
"""Log stores, by scheme, of which Delta says that a version lands once whoever writes it. All others are not trusted:
to wait for a turn costs little, a lost commit is lost for good."""


def keeps_processes_apart(scheme: str, configured: str) -> bool:
    """With the class that the session names for that scheme; empty for none."""
    return configured.rpartition(".")[2] in _KEPT_APART.get(scheme, frozenset())


def configured_store(scheme: str, setting: Callable[[str], str]) -> str:
    """The class that a session's settings name for logs on that scheme; empty when they leave it to Delta."""
    wanted = (f"delta.logStore.{scheme}.impl", "delta.logStore.class")
    return next((found for key in wanted for name in (f"spark.{key}", key) if (found := setting(name))), _OWN)
