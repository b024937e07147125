"""Spark's classes in the form in which Java maps them into memory: half of what starting a Spark costs is loading them.

Java archives the classes that one process loaded; later ones with the same jars take them from there. Where anything is
different, Java leaves the archive alone and loads classes as ever.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from backcast.model.pipeline import TableFormat
from backcast.spark.packages import local_jars
from backcast.testing.shop import Shop
from tests.crash.lakes import filled_lake

_SECONDS = 240.0
_STORY = """\
import backcast
from backcast.model.request import Request

control = backcast.open(".")
run_id = control.backfill(Request(pipeline="revenue", start="2026-01-03", end="2026-01-05", reason="classes")).run_id
control.undo(run_id)
control.gc()
control.world.close()
"""


def archived_classes(options: str, table_format: TableFormat) -> Path | None:
    """The archive for Java with these options and that format's jars, made by whoever asks first.

    None while another makes it.
    """
    archive = Path(sys.prefix) / f"spark-classes-{table_format}-{_key(options)}.jsa"
    with archive.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if not archive.exists():
            _make(archive, options, table_format)
    return archive if archive.exists() else None


@cache
def _key(options: str) -> str:
    home = os.environ.get("JAVA_HOME")
    java = subprocess.run([f"{home}/bin/java" if home else "java", "-version"], capture_output=True, check=True).stderr
    parts = (java, os.environ.get("SPARK_HOME"), local_jars(), options)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


@cache
def _make(archive: Path, options: str, table_format: TableFormat) -> None:
    """From a process that goes through the whole flow once. Where that makes none, nobody tries again."""
    folder = Path(tempfile.mkdtemp(prefix="backcast-classes-"))
    made = folder / archive.name
    _write_shop(folder, table_format)
    # Until the JVM has ended: it holds the other end of these pipes too, and writes the archive last of all.
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [sys.executable, "-c", _STORY],
            cwd=folder,
            env={**os.environ, "SPARK_SUBMIT_OPTS": f"{options} -XX:ArchiveClassesAtExit={made}"},
            capture_output=True,
            check=False,
            timeout=_SECONDS,
        )
    for old in archive.parent.glob(f"spark-classes-{table_format}-*.jsa"):
        old.unlink()
    if made.exists():
        shutil.move(made, archive.with_suffix(".new"))
        archive.with_suffix(".new").replace(archive)
    shutil.rmtree(folder, ignore_errors=True)


def _write_shop(folder: Path, table_format: TableFormat) -> None:
    filled_lake(table_format, folder, folder / "catalog", "shop").close()
    shop = Shop(folder, "lake.shop", None, table_format)  # type: ignore[arg-type]  # brings its own
    shop.write(folder / "catalog", undo_window="0s")
