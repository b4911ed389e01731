"""The vocabulary: what a plugin says of itself, and what its files say. Does no I/O, reads no clock, knows no torch."""
