"""Runs, chunks, events, leases and publications in SQLite or PostgreSQL, through SQLAlchemy Core."""

from __future__ import annotations

from backcast.store.open import find_store, open_store, place_of

__all__ = ["find_store", "open_store", "place_of"]
