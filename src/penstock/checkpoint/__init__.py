"""A query's durable memory: its folders, its manifest, its lock."""
