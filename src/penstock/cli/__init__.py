"""The terminal: parse, call the action, render. One file per command."""
