"""Contract suites, fault injection and in-memory ports for users and for our own tests."""

from __future__ import annotations

from backcast.testing.transforms import check_transform

__all__ = ["check_transform"]
