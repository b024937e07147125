"""Where the numbers come from: versions and the machine. Nothing that names a person or a host."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from typing import Any

from backcast.spark.versions import Package

_PACKAGES = ("backcast", "pyspark", "pydantic", "sqlalchemy", "cyclopts")


def facts() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "connectors": {package.name.lower(): package.value for package in Package},
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 1024**3, 1),
        "load": [round(each, 2) for each in os.getloadavg()],
    }
