"""An Iceberg table as a target: staged on a branch, published and undone by exact file changes."""
