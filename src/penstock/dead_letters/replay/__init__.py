"""The way back of dead letters: planned, then sent under a lock, each once."""
