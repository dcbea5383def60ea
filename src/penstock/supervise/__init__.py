"""Starts queries, watches them, and ends them well."""
