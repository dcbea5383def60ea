"""What a query is set to, and what it promises."""
