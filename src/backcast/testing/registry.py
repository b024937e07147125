"""A real schema registry (Apicurio, which speaks Confluent's interface): in memory, on loopback and a free port.

Maven fetches it from wherever this machine is set up to fetch from. `python -m backcast.testing.registry` does so ahead
of time; afterwards no network is needed.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from backcast.errors import Unavailable
from backcast.spark.packages import cache_root
from backcast.spark.versions import APICURIO, MAVEN_DEPENDENCY_PLUGIN, REGISTRY
from backcast.testing.servers import kill, start_java

_START_SECONDS = 120.0
_FETCH_SECONDS = 900.0
_LISTENING = re.compile(r"Listening on: (http://127\.0\.0\.1:\d+)")
_SETTINGS = {
    "quarkus.http.host": "127.0.0.1",
    # The system chooses a free one, and the log tells which.
    "quarkus.http.port": "0",
    'quarkus.log.category."io.quarkus".level': "INFO",
}


@dataclass(frozen=True, slots=True)
class SchemaRegistry:
    """A running registry with no schemas. `url` is what clients of Confluent's registry take."""

    address: str
    pid: int

    @property
    def url(self) -> str:
        return f"{self.address}/apis/ccompat/v7"


@contextmanager
def schema_registry() -> Iterator[SchemaRegistry]:
    """Start a registry and stop it by its own pid. Raises Unavailable where it cannot be fetched or does not start."""
    home = registry_home()
    root = Path(tempfile.mkdtemp(prefix="backcast-registry-"))
    try:
        classes = ":".join(map(str, sorted(home.glob("*-runner.jar")) + sorted((home / "lib").glob("*.jar"))))
        settings = [f"-D{name}={value}" for name, value in _SETTINGS.items()]
        main = "io.quarkus.runner.GeneratedMain"
        process = start_java(root / "server.log", "-Xmx256m", *settings, "-cp", classes, main, cwd=root)
        try:
            yield SchemaRegistry(_address(process, root / "server.log"), process.pid)
        finally:
            kill(process)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def registry_home() -> Path:
    """The folder with the registry's jars; fetches them when the cache lacks them."""
    home = cache_root() / f"apicurio-registry-{APICURIO}"
    if not home.is_dir():
        _fetch(home)
    return home


def _fetch(home: Path) -> None:
    """Put the unpacked registry in place as a whole; a process that does the same meanwhile does no harm."""
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(
            "Maven, which fetches the schema registry for tests, is not installed here",
            hint="install it (on Debian: `apt-get install maven`, which `make setup` does for root), then repeat",
        )
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".filling-") as scratch:
        goal = f"{MAVEN_DEPENDENCY_PLUGIN}:copy"
        command = [maven, "--batch-mode", "--quiet", goal, f"-Dartifact={REGISTRY}", f"-DoutputDirectory={scratch}"]
        done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS)
        archives = list(Path(scratch).glob("*.tar.gz"))
        if done.returncode != 0 or not archives:
            hint = "check the network, or name a reachable mirror in Maven's settings.xml"
            raise Unavailable(f"Maven could not fetch {REGISTRY}", hint=hint, detail=done.stdout[-2000:])
        building = Path(scratch, "unpacked")
        _unpack(archives[0], building)
        if not home.is_dir():
            building.rename(home)


def _unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as packed:
        # Early releases of Python 3.11 lack it, and this archive is one that Maven has verified.
        if hasattr(tarfile, "data_filter"):
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(folder)  # noqa: S202 - see above


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where it listens, once it says so."""
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if found := _LISTENING.search(log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.05)
    said = log.read_text(errors="replace").strip()[-1000:]
    raise Unavailable(f"the schema registry did not start: {said}", hint="look at the Java installation")


if __name__ == "__main__":
    try:
        registry_home()
    except Unavailable as reason:
        sys.stderr.write(f"backcast: the tests with a schema registry will fail, because {reason}\n")
