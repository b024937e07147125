"""Contract suites, fault injection and in-memory ports for users and for our own tests."""
