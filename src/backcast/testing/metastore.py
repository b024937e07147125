"""A real Hive metastore on this machine, a server of names for Spark's own catalog, from the jars of pyspark."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_START_SECONDS = 120.0
_SERVER = "org.apache.hadoop.hive.metastore.HiveMetaStore"


@contextmanager
def hive_metastore(folder: Path) -> Iterator[str]:
    """The address of a metastore on loopback, with its database in the folder. It ends with the context."""
    import pyspark

    port, log = _free_port(), folder / "metastore.log"
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/names;create=true",
        "derby.stream.error.file": f"{folder}/derby.log",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": (folder / "warehouse").as_uri(),
        # Pyspark brings no queue for logs that are written later.
        "hive.async.log.enabled": "false",
    }
    command = [
        *("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *(f"-D{key}={value}" for key, value in settings.items()),
        *("-cp", f"{Path(pyspark.__file__).parent}/jars/*", _SERVER, "-p", str(port)),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(port, process, log)
        yield f"thrift://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"no Hive metastore: {log.read_text(errors='replace')[-2000:]}")
