"""Step 2, manifest to stage: claim chunks, read, transform, write to the stage, record."""
