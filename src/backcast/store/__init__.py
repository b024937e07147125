"""Runs, chunks, events, leases and publications in SQLite, through SQLAlchemy Core."""

from __future__ import annotations

from backcast.store.open import open_store

__all__ = ["open_store"]
