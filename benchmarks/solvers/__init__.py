"""Solvers behind one door, each run in a process of its own by the interpreter that has it. Compares nothing."""
