"""Kafka topics: the control plane (offsets, settings, retention) and the reader for Spark, apart from each other."""
