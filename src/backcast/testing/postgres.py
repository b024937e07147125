"""A private PostgreSQL server: made in a temporary folder, on loopback and a free port, gone when its block ends."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from backcast.errors import Unavailable
from backcast.store.postgresql import OLDEST
from backcast.testing.servers import dying_with_parent, free_port

USER = "backcast"
_INSTALLED = Path("/usr/lib/postgresql")
_UNPRIVILEGED = ("postgres", "nobody")
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0
_ATTEMPTS = 5

# The odd time zone, and initdb's sort order of a language, are there to find code that relies on the server's.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "timezone": "America/New_York",
    "unix_socket_directories": "",
}
_NOT_DURABLE = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server. Each `database()` is a new and empty one."""

    port: int
    pid: int
    password: str = field(repr=False)
    host: str = "127.0.0.1"
    user: str = USER

    def database(self) -> str:
        """The name of a database that nobody has used yet."""
        name = f"db_{secrets.token_hex(6)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def url(self, database: str) -> str:
        """As `open_store` takes it, with the password."""
        return f"postgresql://{self.user}:{quote(self.password, safe='')}@{self.host}:{self.port}/{database}"

    def jdbc_url(self, database: str) -> str:
        """As an Iceberg catalog takes it; user and password go beside it."""
        return f"jdbc:postgresql://{self.host}:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """One statement as the server's owner; its rows, if it has any."""
        import psycopg

        with psycopg.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            dbname=database,
            autocommit=True,
        ) as connection:
            cursor = connection.execute(statement.encode())
            return [] if cursor.description is None else cursor.fetchall()


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Start a server and stop it by its own pid. Raises Unavailable where PostgreSQL is not installed.

    Unless it must be `durable` it prefers speed, for it is thrown away anyway.
    """
    binaries = find_binaries()
    root = Path(tempfile.mkdtemp(prefix="backcast-postgres-"))
    try:
        account = _account(root)
        password = secrets.token_urlsafe(12) + "@/:%"
        _initialise(binaries, root, password, account)
        process, port = _start(binaries, root, account, _SETTINGS if durable else {**_SETTINGS, **_NOT_DURABLE})
        try:
            yield PostgresServer(port=port, pid=process.pid, password=password)
        finally:
            _stop(process)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def find_binaries() -> Path:
    """The folder with `initdb` and `postgres`: that of the PATH, else the newest where Debian puts them."""
    on_path = [Path(found).resolve().parent for name in ("initdb", "postgres") if (found := shutil.which(name))]
    installed = sorted(_INSTALLED.glob("*/bin"), key=lambda folder: _number(folder.parent.name), reverse=True)
    for folder in (*on_path, *installed):
        if (folder / "initdb").exists() and (folder / "postgres").exists() and _major(folder) >= OLDEST:
            return folder
    raise Unavailable(
        f"no PostgreSQL server {OLDEST} or newer is installed here",
        hint="install one (on Debian: `apt-get install postgresql`, which `make setup` does for root), then repeat",
    )


def _major(folder: Path) -> int:
    answer = subprocess.run([folder / "postgres", "--version"], capture_output=True, text=True, check=True)
    return _number(answer.stdout.split()[2].partition(".")[0])


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


def _account(root: Path) -> dict[str, Any]:
    """Arguments of Popen: PostgreSQL refuses to run as root, so root hands the folder to someone else."""
    if os.geteuid() != 0:
        return {}
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    account = next(known[name] for name in _UNPRIVILEGED if name in known)
    os.chown(root, account.pw_uid, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _initialise(binaries: Path, root: Path, password: str, account: dict[str, Any]) -> None:
    secret = root / "password"
    secret.touch(mode=0o600)
    secret.write_text(password)
    if account:
        os.chown(secret, account["user"], account["group"])
    command = [
        f"{binaries}/initdb",
        "--pgdata",
        f"{root}/data",
        "--username",
        USER,
        "--pwfile",
        f"{secret}",
        "--no-sync",
    ]
    command += ["--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"]
    command += ["--locale-provider", "icu", "--icu-locale", "en-US"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, **account)
    secret.unlink()
    if done.returncode != 0:
        raise Unavailable(f"initdb failed: {done.stderr.strip()[-500:]}", hint="look at the PostgreSQL installation")


def _start(
    binaries: Path, root: Path, account: dict[str, Any], settings: dict[str, str]
) -> tuple[subprocess.Popen[bytes], int]:
    """Another process may take the free port first: then it is tried with another one."""
    for _ in range(_ATTEMPTS):
        port = free_port()
        options = [f"--{name}={value}" for name, value in {**settings, "port": str(port)}.items()]
        command = [*dying_with_parent("INT"), f"{binaries}/postgres", "-D", f"{root}/data", *options]
        with (root / "server.log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, cwd=root, **account)
        if _answers(process, root / "data" / "postmaster.pid"):
            return process, port
        _stop(process)
    log_text = (root / "server.log").read_text(errors="replace")
    raise Unavailable(f"PostgreSQL did not start: {log_text[-500:]}", hint="look at the PostgreSQL installation")


def _answers(process: subprocess.Popen[bytes], status: Path) -> bool:
    """The server writes `ready` into the last line of its pid file. False when it ended instead."""
    deadline = time.monotonic() + _START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if status.exists() and status.read_text().rstrip().endswith("ready"):
            return True
        time.sleep(0.02)
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End all connections and the server, without waiting for clients."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGQUIT)
            process.wait()
