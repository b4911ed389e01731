"""The walls around a worker: what it sees, what it may use, and the proof that each wall stands. Runs no plugin."""
