"""Adapters of the Target port: where a run stages and publishes."""
