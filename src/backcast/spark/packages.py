"""Connector jars: resolved once through Spark's own Ivy, kept in our cache, and found there without Ivy afterwards.

The resolution is spark-submit's, so that whatever a machine says about repositories (spark-defaults.conf, Ivy settings,
DEFAULT_ARTIFACT_REPOSITORY, proxies) holds here too. `python -m backcast.spark.packages` fills the cache ahead of time.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from backcast.errors import Unavailable
from backcast.spark.versions import BROKER, EMBEDDED_LAKE, Package

_LISTING = "jars.json"
_RESOLVE_SECONDS = 900
# Spark's resolution leaves Scala's library out, because Spark brings it; and Kafka's says nothing about a logger.
_BROKER_BORROWS = ("scala-library", "slf4j-api", "log4j-slf4j2-impl")
# Runs in a child process: a gateway without a Spark context tells which jars spark-submit resolved.
_ASK_SPARK = """
from pyspark.java_gateway import launch_gateway
gateway = launch_gateway()
print("JARS=" + (gateway.jvm.java.lang.System.getProperty("spark.jars") or ""), flush=True)
gateway.shutdown()
"""


def cache_root() -> Path:
    """Where resolved jars are kept: $BACKCAST_CACHE, or backcast/ in the user's cache folder."""
    if own := os.environ.get("BACKCAST_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "backcast"


def local_jars(packages: Sequence[Package] = EMBEDDED_LAKE) -> tuple[Path, ...]:
    """The jars of these packages on this machine; resolves those that the cache lacks. Raises Unavailable."""
    jars = [jar for package in packages for jar in _jars_of(package.value, lambda jar: not _shipped(jar))]
    return tuple({jar.name: jar for jar in jars}.values())


def broker_jars() -> tuple[Path, ...]:
    """A Kafka broker's jars on this machine, for a JVM of its own. Raises Unavailable."""
    borrowed = [jar for name in _BROKER_BORROWS for jar in _brought().glob(f"{name}-[0-9]*.jar")]
    return (*borrowed, *_jars_of(BROKER, lambda _: True))


def are_cached(packages: Sequence[Package] = EMBEDDED_LAKE) -> bool:
    """Whether a session can start without asking any repository."""
    return all(_listed(_folder(package.value)) is not None for package in packages)


def _jars_of(coordinate: str, wanted: Callable[[Path], bool]) -> tuple[Path, ...]:
    """One coordinate is one entry, so that every set of packages is there once each of them was."""
    folder = _folder(coordinate)
    cached = _listed(folder)
    if cached is None:
        _fill(folder, [jar for jar in _resolve(coordinate) if wanted(jar)])
        cached = _listed(folder)
    if cached is None:
        raise Unavailable(f"the connector cache {folder} cannot be read", hint="remove that folder and run again")
    return cached


def _folder(coordinate: str) -> Path:
    return cache_root() / "jars" / hashlib.sha256(coordinate.encode()).hexdigest()[:16]


def _listed(folder: Path) -> tuple[Path, ...] | None:
    """The listed jars, or None unless each is there with its recorded size."""
    try:
        listing: dict[str, int] = json.loads((folder / _LISTING).read_text())
        complete = all((folder / name).stat().st_size == size for name, size in listing.items())
    except (OSError, ValueError):
        return None
    return tuple(folder / name for name in listing) if complete else None


def _resolve(coordinate: str) -> list[Path]:
    """This artifact and all that it needs, as spark-submit fetches them."""
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--packages {coordinate} pyspark-shell"}
    command = [sys.executable, "-c", _ASK_SPARK]
    try:
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=_RESOLVE_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise _unresolved(coordinate, f"no answer within {_RESOLVE_SECONDS} s") from error
    found = [line.removeprefix("JARS=") for line in answer.stdout.splitlines() if line.startswith("JARS=")]
    if answer.returncode != 0 or not found:
        raise _unresolved(coordinate, answer.stderr[-2000:])
    return [Path(unquote(urlsplit(each).path)) for each in found[0].split(",") if each]


def _shipped(jar: Path) -> bool:
    """Whether Spark brings this library itself. On the class path ours would come first, in a version it cannot use."""
    artifact = _artifact(jar.name.partition("_")[2])
    return any(_artifact(each.name) == artifact for each in _brought().glob("*.jar"))


def _brought() -> Path:
    """The folder of the jars that Spark brings."""
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _artifact(name: str) -> str:
    """A jar's name without version: `jackson-databind` of `jackson-databind-2.13.5.jar`."""
    return re.sub(r"-\d.*$", "", name)


def _unresolved(coordinate: str, detail: str) -> Unavailable:
    hint = "check the network, or name a reachable repository in spark-defaults.conf (spark.jars.repositories)"
    return Unavailable(f"Spark could not fetch {coordinate}", hint=hint, detail=detail)


def _fill(folder: Path, jars: Sequence[Path]) -> None:
    """Put the jars and their listing in place as a whole; a process that does the same meanwhile does no harm."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".filling-") as scratch:
            building = Path(scratch, "jars")
            building.mkdir()
            for jar in jars:
                shutil.copyfile(jar, building / jar.name)
            listing = {jar.name: (building / jar.name).stat().st_size for jar in jars}
            (building / _LISTING).write_text(json.dumps(listing, indent=2) + "\n")
            if _listed(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)
                building.rename(folder)
    except OSError as error:
        if _listed(folder) is None:
            raise Unavailable(f"the connector cache {folder} cannot be written: {error}") from error


if __name__ == "__main__":
    for name in sorted(path.name for path in local_jars(tuple(Package))):
        print(f"connector ready: {name}")
    print(f"broker ready: {len(broker_jars())} jars of {BROKER}")
