"""A function that SQL cannot say."""

from __future__ import annotations


def score(city: str, cents: int) -> int:
    """Some steps of a well-known checksum over what it is given."""
    total = cents
    for letter in city:
        total = (total * 31 + ord(letter)) % 65_521
    return total
