"""Schemas that live: inferred once, kept in versions, widened when files bring new columns."""
