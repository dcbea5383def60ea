"""Judgement before anything runs: one rule, one pure function."""
