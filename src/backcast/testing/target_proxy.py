"""A line to PostgreSQL that can be cut at the worst moment: a statement was carried out, its answer is on the way.

An Iceberg catalog in PostgreSQL commits a table by one UPDATE that names the table's next metadata file.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_COMMITS = b".metadata.json"
"""Only a commit sends the name of a metadata file to the database."""
_CHUNK = 65_536


class Line:
    """Forwards connections from a port of its own to the server. Cuts one connection when told to."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._armed = threading.Event()
        self.cut = threading.Event()
        """Set once a connection was cut."""
        self._run(self._accept)

    @contextmanager
    def lost_commit(self) -> Iterator[None]:
        """Lose the answer to the first commit inside the block, which must come, and with it the connection."""
        self.cut.clear()
        self._armed.set()
        try:
            yield
        finally:
            self._armed.clear()
        assert self.cut.is_set(), "nothing was committed over this line"

    def close(self) -> None:
        for each in (self._listener, *self._sockets):
            _close(each)
        for thread in self._threads:
            thread.join(timeout=10)

    def _run(self, work: object, *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)  # type: ignore[arg-type]  # methods below
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._sockets += [client, server]
                doomed = threading.Event()
                self._run(self._to_server, client, server, doomed)
                self._run(self._to_client, server, client, doomed)

    def _to_server(self, client: socket.socket, server: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(_CHUNK):
                if _COMMITS in data and self._armed.is_set():
                    self._armed.clear()
                    doomed.set()
                server.sendall(data)
        _close(server)

    def _to_client(self, server: socket.socket, client: socket.socket, doomed: threading.Event) -> None:
        with suppress(OSError):
            while data := server.recv(_CHUNK):
                if doomed.is_set():
                    # The server answers after it has committed: from here on the commit has certainly landed.
                    self.cut.set()
                    break
                client.sendall(data)
        for each in (client, server):
            _close(each)


def _close(each: socket.socket) -> None:
    with suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    each.close()


@contextmanager
def line_to(host: str, port: int) -> Iterator[Line]:
    """A line to that server, gone when the block ends."""
    line = Line((host, port))
    try:
        yield line
    finally:
        line.close()
