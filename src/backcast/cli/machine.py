"""Probes of this machine that need no project, no Spark and no working installation of either."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backcast.model.report import Probe
    from backcast.spark.versions import Package

_PYTHON = (3, 11)
_JAVA_FROM, _JAVA_BELOW = 17, 23
"""Hadoop inside Spark 4.0 calls Subject.getSubject, which Java 23 and later refuse."""
_INSTALL_JAVA = "install a JDK or JRE 17 or 21, or set JAVA_HOME to one"


def probes(packages: Sequence[Package] | None = None) -> list[Probe]:
    """`packages` are the connectors that the project at hand needs; None when there is no project to ask."""
    return [_python(), java(), _pyspark(), connectors(packages)]


def java() -> Probe:
    """The Java that Spark would start."""
    from backcast.model.report import Probe

    home = os.environ.get("JAVA_HOME")
    program = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if program is None:
        return Probe(
            name="java", ok=False, detail="no java on the PATH, and JAVA_HOME is not set", remedy=_INSTALL_JAVA
        )
    try:
        answer = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Probe(name="java", ok=False, detail=f"{program} does not run: {error}", remedy=_INSTALL_JAVA)
    version, major = java_version(answer.stderr + answer.stdout)
    if major is None:
        return Probe(name="java", ok=False, detail=f"{program} does not tell its version", remedy=_INSTALL_JAVA)
    if not _JAVA_FROM <= major < _JAVA_BELOW:
        wrong = f"{program} is Java {version}; Spark 4.0 needs {_JAVA_FROM} to {_JAVA_BELOW - 1}"
        return Probe(name="java", ok=False, detail=wrong, remedy=_INSTALL_JAVA)
    return Probe(name="java", ok=True, detail=f"{version} at {program}")


def java_version(text: str) -> tuple[str, int | None]:
    """Version and major number out of `java -version`; old ones call themselves 1.8."""
    found = re.search(r'version "([^"]+)"', text)
    if found is None:
        return "", None
    numbers = re.findall(r"\d+", found[1])
    if not numbers:
        return found[1], None
    major = numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0]
    return found[1], int(major)


def _python() -> Probe:
    from backcast.model.report import Probe

    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _PYTHON:
        return Probe(name="python", ok=False, detail=f"{version} is too old", remedy="use Python 3.11 or newer")
    return Probe(name="python", ok=True, detail=f"{version} at {sys.executable}")


def _pyspark() -> Probe:
    from backcast.model.report import Probe
    from backcast.spark.versions import SPARK

    try:
        version = metadata.version("pyspark")
    except metadata.PackageNotFoundError:
        return Probe(name="pyspark", ok=False, detail="not installed", remedy="pip install 'backcast[spark]'")
    if not version.startswith(f"{SPARK}."):
        wrong = f"{version}; the connectors are built for {SPARK}"
        return Probe(name="pyspark", ok=False, detail=wrong, remedy="pip install 'backcast[spark]'")
    return Probe(name="pyspark", ok=True, detail=version)


def connectors(packages: Sequence[Package] | None = None) -> Probe:
    from backcast.model.report import Probe
    from backcast.spark.packages import are_cached, cache_root
    from backcast.spark.versions import EMBEDDED_LAKE

    needed = EMBEDDED_LAKE if packages is None else packages
    names = ", ".join(":".join(package.value.split(":")[1:]) for package in needed)
    if are_cached(needed):
        return Probe(name="connectors", ok=True, detail=f"{names} in {cache_root()}")
    remedy = "the first command that needs Spark fetches them, once; it needs the network then"
    return Probe(name="connectors", ok=False, detail=f"{names} not in {cache_root()} yet", remedy=remedy)
