"""Frozen inputs of judgement: what is stored, what was observed, and what a query is made of."""
