"""One file per verb; each gives a frozen result that the terminal, `--json` and the browser show."""
