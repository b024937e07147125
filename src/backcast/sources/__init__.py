"""Adapters of the Source port: where a run reads from."""
