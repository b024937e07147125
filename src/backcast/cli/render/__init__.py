"""Documents to what a terminal shows: pure functions, no I/O, no clock."""
