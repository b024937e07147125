"""Reading Delta tables: what sources and targets share. Nothing here changes a live table."""
