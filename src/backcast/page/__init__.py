"""Self-contained pages out of documents: text in, text out. Nothing here reads, writes or fetches anything."""
