"""PostgreSQL's complaints in the product's words.

Only codes and a few known signs are read: PostgreSQL's own sentences repeat statements, values and user names.
"""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """What is wrong, as the end of a sentence about the store, and what to do."""

    meaning: str
    remedy: str


_AGAIN = "repeat the command; if it happens again, look at the server's log"
_ACCESS = "check the user in `store` and its password: ${VARIABLE}, ${file:path}, PGPASSWORD or a password file"
_GONE = Problem("cannot be reached", "check that the server runs and that this machine may reach it, then repeat")
_REFUSED = Problem("refuses this user or its password", _ACCESS)
_NO_DATABASE = Problem("is not there: that server has no such database", "create it with `createdb`, owned by its user")
_FULL = Problem("has no connection left", "raise max_connections on that server, or end what holds the others")
_BROKEN = Problem("is damaged", "restore it from a backup; the tables it describes were not touched")

_TLS = Problem("cannot be reached over TLS", "check sslmode and sslrootcert in `store`")
_READ_ONLY = Problem("cannot be written: that server is read-only", "name the primary in `store`")

_SERVER_SIGNS = (
    ("password authentication failed", _REFUSED),
    ("pg_hba.conf", _REFUSED),
    ("permission denied", _REFUSED),
    ('role "', _REFUSED),
    ('database "', _NO_DATABASE),
    ("too many clients", _FULL),
    ("remaining connection slots", _FULL),
)
_CLIENT_SIGNS = (
    ("no password supplied", _REFUSED),
    ("read-only", _READ_ONLY),
    ("SSL", _TLS),
    ("certificate", _TLS),
)

_STATES = (
    ("55P03", Problem("is held by another process", "wait for the other command to end and repeat this one")),
    ("25P03", Problem("gave the turn of this process to another: it stood still for too long", _AGAIN)),
    ("25006", _READ_ONLY),
    (
        "42501",
        Problem("does not let this user work in its schema", "make the user the schema's owner, or grant ALL on it"),
    ),
    ("42P01", _BROKEN),
    ("42703", _BROKEN),
    ("53100", Problem("cannot grow: the server's disk is full", "free space on that disk and repeat the command")),
    ("53300", _FULL),
    ("XX00", _BROKEN),
    ("28", _REFUSED),
    ("3D", _NO_DATABASE),
    ("08", _GONE),
    ("57P", _GONE),
)


def connecting_failed(complaint: str) -> Problem:
    """Without a connection there is no code, only sentences, of which a few can be told apart."""
    _, fatal, sentence = complaint.partition("FATAL:")
    signs, text = (_SERVER_SIGNS, sentence) if fatal else (_CLIENT_SIGNS, complaint)
    return next((problem for sign, problem in signs if sign in text), _GONE)


def statement_failed(state: str) -> Problem:
    """By the five characters of SQLSTATE."""
    known = (problem for prefix, problem in _STATES if state.startswith(prefix))
    return next(known, Problem(f"failed with SQLSTATE {state}", _AGAIN))
