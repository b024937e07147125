"""Live queries and their checkpoints: run, look at, copy, take back. No step of the flow lives here."""
