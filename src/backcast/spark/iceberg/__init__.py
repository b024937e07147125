"""Reading Iceberg tables through the JVM gateway: what sources and targets share. Nothing here changes a table."""
