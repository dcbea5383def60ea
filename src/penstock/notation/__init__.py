"""How users write values: durations, paths, and references to variables."""
