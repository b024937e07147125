"""Step 4, verdict to table: publish, undo and clean up."""
