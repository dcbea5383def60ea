"""What a run looks like: as a table, as lines, as HTML. Draws on the console that it is given."""
