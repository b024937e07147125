"""A real Kafka broker of one node: made in a temporary folder, on loopback and free ports, gone when its block ends."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from backcast.errors import Unavailable
from backcast.spark.packages import broker_jars
from backcast.testing.kafka_topics import KafkaTopics
from backcast.testing.servers import free_ports, kill, start_java

_START_SECONDS = 120.0
_ATTEMPTS = 5
_HEAP = "-Xmx512m"

_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    # A topic is never made by who only looks for it.
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A machine that is busy lets heartbeats wait; a broker that is fenced for it takes no topics.
    "broker.session.timeout.ms": "120000",
    # Retention and compaction happen at once, but only to segments that a test ended: time alone ends none.
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "250",
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0",
    "log.segment.delete.delay.ms": "1000",
    "log.roll.hours": "876000",
    # One small node.
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
}


class KafkaBroker(KafkaTopics):
    """A running broker and its topics. `servers` is what clients take as bootstrap.servers."""

    def __init__(self, servers: str, data: Path, pid: int) -> None:
        super().__init__(servers, data)
        self.pid = pid


@contextmanager
def kafka_broker() -> Iterator[KafkaBroker]:
    """Start a broker and stop it by its own pid. Raises Unavailable where it cannot be fetched or does not start."""
    root = Path(tempfile.mkdtemp(prefix="backcast-kafka-"))
    try:
        process, servers = _start(root)
        try:
            yield KafkaBroker(servers, root / "data", process.pid)
        finally:
            # Nothing of it is kept, so it need not leave its logs in order.
            kill(process)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _start(root: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Another process may take a free port first: then it is tried with others."""
    cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    classes = ":".join(map(str, broker_jars()))
    properties, log = root / "server.properties", root / "server.log"
    for _ in range(_ATTEMPTS):
        servers = _configure(properties, root / "data")
        if not (root / "data" / "meta.properties").exists():
            _format(classes, properties, cluster, log)
        process = start_java(log, _HEAP, "-cp", classes, "kafka.Kafka", str(properties), cwd=root)
        try:
            if _answers(process, servers, cluster):
                return process, servers
        except BaseException:
            kill(process)
            raise
        if process.poll() is None:
            # It had its time: another attempt would take as long.
            kill(process)
            break
    raise _unavailable("the Kafka broker did not start", log)


def _configure(properties: Path, data: Path) -> str:
    """Write the settings with ports that are free now; the address for clients."""
    servers, control = (f"127.0.0.1:{port}" for port in free_ports(2))
    settings = {
        **_SETTINGS,
        "controller.quorum.voters": f"1@{control}",
        "listeners": f"PLAINTEXT://{servers},CONTROLLER://{control}",
        "advertised.listeners": f"PLAINTEXT://{servers}",
        "log.dirs": str(data),
    }
    properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return servers


def _format(classes: str, properties: Path, cluster: str, log: Path) -> None:
    # As one word: an id may begin with a minus, one in 64 does, and would be taken for an option.
    arguments = ["kafka.tools.StorageTool", "format", f"--cluster-id={cluster}", "-c", str(properties)]
    process = start_java(log, _HEAP, "-cp", classes, *arguments, cwd=properties.parent)
    try:
        formatted = process.wait(_START_SECONDS) == 0
    except subprocess.TimeoutExpired:
        formatted = False
    finally:
        kill(process)
    if not formatted:
        raise _unavailable("the storage of a Kafka broker could not be formatted", log)


def _answers(process: subprocess.Popen[bytes], servers: str, cluster: str) -> bool:
    """Whether this broker, and not one that took its port, came up. False when it ended instead, or takes too long.

    A broker answers before it is in service: until then nobody lists it, and it takes no topics.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    patience = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 100, "log_level": 0}
    admin = AdminClient({"bootstrap.servers": servers, **patience})
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            found = admin.list_topics(timeout=1)
            if found.cluster_id == cluster and found.brokers:
                return True
        except KafkaException:
            pass
        time.sleep(0.05)
    return False


def _unavailable(sentence: str, log: Path) -> Unavailable:
    said = log.read_text(errors="replace").strip()[-1000:]
    return Unavailable(f"{sentence}: {said}", hint="look at the Java installation and its memory")
