"""The Spark session, its connector packages and the processes behind it."""
