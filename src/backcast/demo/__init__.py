"""A sample lake, a live writer and a restatement from plan to undo."""
