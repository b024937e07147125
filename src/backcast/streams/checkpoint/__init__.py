"""Checkpoints of Structured Streaming queries: read, judge, copy, go back. Works on files; Spark only proves state."""
