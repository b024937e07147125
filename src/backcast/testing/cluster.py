"""A real standalone Spark cluster on this machine: a master and two workers, started from pyspark's own classes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_START_SECONDS = 60.0
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"


@contextmanager
def standalone_cluster(folder: Path, workers: int = 2, memory: str = "1g") -> Iterator[str]:
    """The address of a master on loopback whose workers have one core each. All of it ends with the context."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        log = folder / "master.log"
        processes.append(_start(log, _MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"))
        address = _wait(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)", processes[0])
        options = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", memory]
        logs = [folder / f"worker-{number}.log" for number in range(workers)]
        for number, log in enumerate(logs):
            processes.append(_start(log, _WORKER, *options, "--work-dir", str(folder / f"work-{number}"), address))
        for log, process in zip(logs, processes[1:], strict=True):
            _wait(log, r"(Successfully registered with master)", process)
        yield address
    finally:
        for process in reversed(processes):
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait(30)


def _start(log: Path, name: str, *arguments: str) -> subprocess.Popen[bytes]:
    import pyspark

    home = Path(pyspark.__file__).parent
    log.parent.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "512m",
        # They do little and not for long.
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "SPARK_NO_DAEMONIZE": "1",
    }
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), name, *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
        )


def _wait(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    """What the pattern's group matches in the log, once it is there."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(pattern, log.read_text(errors="replace")):
            return found[1]
        time.sleep(0.1)
    raise RuntimeError(f"no {pattern!r} in {log}: {log.read_text(errors='replace')[-2000:]}")
