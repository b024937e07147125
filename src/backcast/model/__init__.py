"""The nouns: frozen values and pure functions, without I/O, clock or randomness."""
