"""The rules, a file for each topic; `penstock.checks.runner` lists the files."""
