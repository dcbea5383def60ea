"""The rules, a file for each topic; `penstock.checks.every_rule` lists the files."""
